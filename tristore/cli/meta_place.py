"""What the commands of the metastore share: where a record is, and how one is shown."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

Namespace = Annotated[str, typer.Argument(help="The namespace.")]
Key = Annotated[str, typer.Argument(help="The key of the record.")]
IfMatch = Annotated[
    int | None, typer.Option("--if-match", min=1, help="Only if this is its version.")
]
BASE = "/metastore/v1"


def record_path(namespace: str, key: str) -> str:
    return f"{BASE}/records/{quote(namespace, safe='')}/{quote(key, safe='')}"


def if_match(version: int | None) -> dict[str, str]:
    return {} if version is None else {"If-Match": f'"{version}"'}


def document(text: str, name: str) -> Any:
    """JSON from the command line, a file or stdin."""
    try:
        if text == "-":
            text = sys.stdin.read()
        elif text.startswith("@"):
            text = Path(text[1:]).read_text("utf-8")
        return json.loads(text)
    except (OSError, ValueError) as error:
        raise typer.BadParameter(f"--{name} is not readable as JSON: {error}") from None


def show_record(record: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print(json.dumps(record))
        return
    table = Table(show_header=False, box=None)
    table.add_column()
    table.add_column(overflow="fold")
    for name, value in record.items():
        text = ", ".join(value) if name == "tags" else value
        if name == "metadata":
            text = json.dumps(value, indent=2, ensure_ascii=False)
        table.add_row(name, "" if text is None else escape(str(text)))
    Console().print(table)
