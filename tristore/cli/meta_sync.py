"""`tristore meta sync`: how the records of files follow the filestore, and what one can do."""

import json
import time
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
from rich.table import Table

from tristore.cli.client import Client
from tristore.cli.options import AsJson, Cursor, DataDir, Limit, Token, Url
from tristore.cli.tables import folding, show_page
from tristore.errors import Terminal

app = typer.Typer(
    help="The filestore sync: status, refusals, rebuild, retry, pause, resume.",
    no_args_is_help=True,
)

_PATH = "/metastore/v1/sync"
_POLL_SECONDS = 0.2


@app.command("status")
def status(
    url: Url = None, token: Token = None, data_dir: DataDir = None, as_json: AsJson = False
) -> None:
    """Show whether it runs, how far it is behind and what it could not write."""
    _show(Client.find(url, token, data_dir).get(_PATH), as_json)


@app.command("refusals")
def show_refusals(
    limit: Limit = 50,
    cursor: Cursor = None,
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Show the nodes whose records break the rules of the namespace."""
    page = Client.find(url, token, data_dir).get(f"{_PATH}/refusals", limit=limit, cursor=cursor)
    if as_json:
        print(json.dumps(page))
        return
    table = folding("key", "path", "reason", "since", "errors")
    for item in page["items"]:
        errors = "; ".join(f"{e['path']} {e['message']}" for e in item["errors"])
        row = [item["key"], item["filestore"].get("path", ""), item["reason"], item["at"][:19]]
        table.add_row(*(escape(str(cell)) for cell in [*row, errors]))
    show_page(table, page)


@app.command("pause")
def pause(
    url: Url = None, token: Token = None, data_dir: DataDir = None, as_json: AsJson = False
) -> None:
    """Write nothing more until it is resumed; the log keeps what it has still to read."""
    _show(Client.find(url, token, data_dir).post(f"{_PATH}/pause"), as_json)


@app.command("resume")
def resume(
    url: Url = None, token: Token = None, data_dir: DataDir = None, as_json: AsJson = False
) -> None:
    """Go on where it was paused."""
    _show(Client.find(url, token, data_dir).post(f"{_PATH}/resume"), as_json)


@app.command("retry")
def retry(
    url: Url = None, token: Token = None, data_dir: DataDir = None, as_json: AsJson = False
) -> None:
    """Try again what was refused; after a change of rules that happens by itself."""
    _show(Client.find(url, token, data_dir).post(f"{_PATH}/retry"), as_json)


@app.command("rebuild")
def rebuild(
    wait: Annotated[bool, typer.Option(help="Wait for its end and show how far it is.")] = True,
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Read the log again from its beginning and write what differs from it."""
    client = Client.find(url, token, data_dir)
    begun = client.post(f"{_PATH}/rebuild")
    if not wait:
        _show(begun, as_json)
        return
    if not as_json and not begun["started"]:
        print("one is under way already; waiting for it")
    ended = _follow(client, begun["rebuild"], quiet=as_json)
    if ended["error"]:
        raise Terminal(f"the rebuild ended early: {ended['error']}")
    if as_json:
        print(json.dumps(ended))
    else:
        print(f"{ended['events']} events read, {ended['changed']} records changed")
        if ended["unknown"]:
            print(f"{ended['unknown']} records belong to nodes the log does not know; left alone")


def _follow(client: Client, job: dict[str, Any], *, quiet: bool) -> dict[str, Any]:
    columns = (TextColumn("reading the log"), BarColumn(), TaskProgressColumn())
    with Progress(*columns, disable=quiet, transient=True) as progress:
        task = progress.add_task("", total=max(1, job["toSequence"] - job["fromSequence"]))
        while True:
            found: dict[str, Any] = client.get(_PATH)["rebuild"]
            progress.update(task, completed=found["sequence"] - found["fromSequence"])
            if found["id"] != job["id"] or found["state"] != "running":
                return found
            time.sleep(_POLL_SECONDS)


def _show(found: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print(json.dumps(found))
        return
    table = Table(show_header=False, box=None)
    for name, value in found.items():
        if name == "rebuild" and value:
            value = f"{value['state']}, {value['events']} events, {value['changed']} changed"
        table.add_row(name, "" if value is None else escape(str(value)))
    Console().print(table)
    if found.get("refused"):
        print("see what and why: tristore meta sync refusals")
