"""`tristore meta bulk`: many changes from a file, in calls of a size the platform takes."""

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress

from tristore.cli.client import Client
from tristore.cli.meta_place import BASE
from tristore.cli.options import AsJson, DataDir, Token, Url

# Well below what one call may hold, in number and in bytes.
_ITEMS = 1000
_BYTES = 8 * 1024 * 1024


def bulk(
    file: Annotated[
        str, typer.Argument(help="One item a line, or a JSON list of them; - for stdin.")
    ],
    atomic: Annotated[
        bool, typer.Option("--atomic", help="All of it in one call, or nothing.")
    ] = False,
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Upsert and delete many: {"op": "upsert", "namespace": …, "key": …, "metadata": …}."""
    items = _items(file)
    client = Client.find(url, token, data_dir)
    calls = [items] if atomic else list(_chunks(items))
    mode = "atomic" if atomic else "perItem"
    results: list[dict[str, Any]] = []
    quiet = as_json or len(calls) < 2
    with Progress(console=Console(stderr=True), disable=quiet, transient=True) as progress:
        task = progress.add_task("writing", total=len(items))
        for part in calls:
            sent = client.post(f"{BASE}/records/bulk", {"mode": mode, "items": part})
            results += sent["results"]
            progress.advance(task, len(part))
    _tell(items, results, as_json)


def _tell(items: list[Any], results: list[dict[str, Any]], as_json: bool) -> None:
    counts = Counter(result["outcome"] for result in results)
    if as_json:
        print(json.dumps({"results": results}))
    else:
        print(", ".join(f"{count} {name}" for name, count in sorted(counts.items())))
    refused = [(i, r) for i, r in zip(items, results, strict=True) if r["outcome"] == "refused"]
    for item, result in refused[:20] if not as_json else ():
        key = item.get("key") if isinstance(item, dict) else item
        print(f"  {key}: {result['error']['detail']}", file=sys.stderr)
    if refused:
        raise typer.Exit(1)


def _items(file: str) -> list[Any]:
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text("utf-8")
        if text.lstrip().startswith("["):
            found = json.loads(text)
        else:
            found = [json.loads(line) for line in text.splitlines() if line.strip()]
    except (OSError, ValueError) as error:
        raise typer.BadParameter(f"{file} is not readable as JSON: {error}") from None
    if not found:
        raise typer.BadParameter(f"{file} holds no items")
    return list(found)


def _chunks(items: list[Any]) -> Iterator[list[Any]]:
    part: list[Any] = []
    size = 0
    for item in items:
        weight = len(json.dumps(item))
        if part and (len(part) >= _ITEMS or size + weight > _BYTES):
            yield part
            part, size = [], 0
        part.append(item)
        size += weight
    yield part
