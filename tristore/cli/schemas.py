"""`tristore schemas`: which payloads the bus accepts, and what a new version would break."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tristore.cli.client import Client
from tristore.cli.options import AsJson, Cursor, DataDir, Limit, OnlyType, Token, Url
from tristore.cli.tables import cells, show_page
from tristore.errors import InvalidRequest, NotFound
from tristore.events import strictjson

app = typer.Typer(help="Event schemas: list, show, register, check.", no_args_is_help=True)

Type = Annotated[str, typer.Argument(help="The event type, such as orders.order.placed.")]
File = Annotated[str, typer.Argument(help="File with the JSON Schema; - reads standard input.")]
Mode = Literal["backward", "forward", "full", "none"]
Status = Literal["active", "deprecated", "disabled"]
Compatibility = Annotated[Mode, typer.Option(help="What must not break.")]
_PATH = "/admin/event-schemas"


@app.command("list")
def show_all(
    type: OnlyType = None,
    limit: Limit = 100,
    cursor: Cursor = None,
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Show every version of every type."""
    page = Client.find(url, token, data_dir).get(_PATH, type=type, limit=limit, cursor=cursor)
    if as_json:
        print(json.dumps(page))
        return
    table = Table("type", "version", "status", "origin", "since")
    for item in page["items"]:
        row = [item["type"], item["version"], item["status"], item["origin"], item["createdAt"]]
        table.add_row(*cells(row))
    show_page(table, page)


@app.command("show")
def show(
    type: Type,
    version: Annotated[int | None, typer.Option(min=1, help="Without it: the one in use.")] = None,
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Show a schema; only the schema, so that it can be kept as a file."""
    path = f"{_PATH}/{type}" if version is None else f"{_PATH}/{type}/{version}"
    found = Client.find(url, token, data_dir).get(path)
    if as_json:
        print(json.dumps(found))
        return
    print(json.dumps(found["schema"], indent=2, ensure_ascii=False))
    print(f"{found['type']} version {found['version']}, {found['status']}", file=sys.stderr)


@app.command("register")
def register(
    type: Type,
    file: File,
    version: Annotated[int | None, typer.Option(min=1, help="Without it: the next.")] = None,
    status: Annotated[Status, typer.Option(help="For which events it is used.")] = "active",
    compatibility: Compatibility = "backward",
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Register a new version; the same schema again is the same version."""
    body = {"type": type, "schema": _read(file), "status": status, "compatibility": compatibility}
    body |= {} if version is None else {"version": version}
    found = Client.find(url, token, data_dir).post(_PATH, body)
    if as_json:
        print(json.dumps(found))
    else:
        print(f"{found['type']} version {found['version']} is {found['status']}")


@app.command("check")
def check(
    type: Type,
    file: File,
    mode: Compatibility = "backward",
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Tell what a schema would break; exit 1 if it is not compatible in the asked mode."""
    body = {"type": type, "schema": _read(file), "mode": mode}
    found = Client.find(url, token, data_dir).post(f"{_PATH}/check", body)
    if as_json:
        print(json.dumps(found))
    else:
        _print_verdict(type, found)
    if not found["compatible"]:
        print(f"tristore: not {mode} compatible with version {found['against']}", file=sys.stderr)
        raise typer.Exit(1)


def _print_verdict(type: str, found: dict[str, Any]) -> None:
    if found["against"] is None:
        print(f"{type} has no schema yet; anything is compatible")
        return
    if not found["changes"]:
        print(f"no change against version {found['against']}")
        return
    table = Table("path", "change", "breaks", "example")
    for change in found["changes"]:
        example = "" if change["example"] is None else json.dumps(change["example"])
        cells = [change["path"] or "/", change["change"], change["breaks"] or "", example[:200]]
        table.add_row(*map(escape, cells))
    Console().print(table)
    kept = [way for way in ("backward", "forward") if found[way]]
    print(f"compatible: {', '.join(kept) or 'in neither direction'}")


def _read(file: str) -> Any:
    try:
        raw = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise NotFound(f"{file} cannot be read: {error.strerror}") from None
    try:
        return strictjson.loads(raw)
    except strictjson.StrictJsonError as error:
        raise InvalidRequest(f"{file} is refused: {error}") from None
