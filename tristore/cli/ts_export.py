"""`tristore ts export`: a dataset as files, followed until they are there."""

import json
from typing import Annotated, Any

import typer

from tristore.cli.client import Client
from tristore.cli.counting import counted
from tristore.cli.fs_progress import counts_bar
from tristore.cli.options import AsJson, DataDir, ExportFormat, RowsFrom, RowsTo, Slug, Token, Url
from tristore.cli.patience import Patience
from tristore.errors import Terminal


def export(
    slug: Slug,
    format: ExportFormat = "parquet",
    target: Annotated[str | None, typer.Option(help="Name of the export.")] = None,
    since: RowsFrom = None,
    until: RowsTo = None,
    wait: Annotated[bool, typer.Option(help="Stay until the files are there.")] = True,
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Write a dataset out as Parquet, CSV or a Delta table."""
    client = Client.find(url, token, data_dir)
    asked = {"format": format, "target": target, "from": since, "to": until}
    body = {name: value for name, value in asked.items() if value is not None}
    found = client.post(f"/timestore/v1/datasets/{slug}/exports", body)
    if wait:
        found = _follow(client, found, as_json)
    print(json.dumps(found) if as_json else _line(found))


def _follow(client: Client, found: dict[str, Any], quiet: bool) -> dict[str, Any]:
    patience = Patience(f"export {found['id']}")
    with counts_bar(f"export {found['id']}", quiet=quiet) as look:
        while found["state"] in ("queued", "running"):
            look(found)
            patience.pause()
            found = client.get(f"/timestore/v1/exports/{found['id']}")
    if found["state"] == "failed":
        raise Terminal(str(found["error"]))
    return found


def _line(found: dict[str, Any]) -> str:
    if found["state"] != "completed":
        return f"export {found['id']} is {found['state']}: {found['target']}"
    counts = ", ".join(counted(found[f"{noun}s"], noun) for noun in ("row", "file", "byte"))
    return f"{found['target']}: {counts}"
