"""`tristore ts datasets` and `tristore ts ingest`: datasets made and altered, files sent in."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from tristore.cli.client import Client, read_answer
from tristore.cli.counting import counted
from tristore.cli.fs_progress import bytes_bar
from tristore.cli.options import AsJson, Cursor, DataDir, Limit, Slug, Token, Url
from tristore.cli.tables import folding, show_page
from tristore.timestore.formats import EXTENSIONS

app = typer.Typer(help="Datasets: list, create, show, alter, delete.", no_args_is_help=True)

MaxAge = Annotated[str | None, typer.Option(help="Keep rows so long: 90d, 12h, 4w.")]
MaxBytes = Annotated[int | None, typer.Option(min=1, help="Keep about so many bytes.")]
Lateness = Annotated[int | None, typer.Option(min=0, help="Seconds rows may come late.")]
_PATH = "/timestore/v1/datasets"
_PIECE_BYTES = 1024 * 1024


@app.command("list")
def show_all(
    limit: Limit = 100,
    cursor: Cursor = None,
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Show the datasets this token may read."""
    page = Client.find(url, token, data_dir).get(_PATH, limit=limit, cursor=cursor)
    if as_json:
        print(json.dumps(page))
        return
    table = folding("dataset", "fed by", "time column", "partitions", "columns", "kept")
    for item in page["items"]:
        columns = ", ".join(column["name"] for column in item["schema"])
        fed = "the log" if item["kind"] == "log" else "ingest"
        row = [item["slug"], fed, item["timeColumn"], item["granularity"], columns, _kept(item)]
        table.add_row(*map(escape, row))
    show_page(table, page)


@app.command("show")
def show(
    slug: Slug,
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Show one dataset with its columns."""
    _print(Client.find(url, token, data_dir).get(f"{_PATH}/{slug}"), as_json)


@app.command("create")
def create(
    slug: Slug,
    columns: Annotated[
        list[str],
        typer.Argument(help="name:type, with ! for never null: at:timestamp station:string!"),
    ],
    time: Annotated[
        str | None, typer.Option("--time", help="The time column; else the first timestamp.")
    ] = None,
    granularity: Annotated[str, typer.Option(help="Partitions by hour, day or month.")] = "day",
    max_age: MaxAge = None,
    max_bytes: MaxBytes = None,
    lateness: Lateness = None,
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Make a dataset: `tristore ts datasets create weather at:timestamp celsius:double`."""
    schema = [_column(text) for text in columns]
    first = next((column["name"] for column in schema if column["type"] == "timestamp"), None)
    if (time or first) is None:
        raise typer.BadParameter("one column must be a timestamp, such as at:timestamp")
    body = {"slug": slug, "timeColumn": time or first, "granularity": granularity}
    body |= {"schema": schema, **_options(max_age, max_bytes, lateness)}
    _print(Client.find(url, token, data_dir).post(_PATH, body), as_json)


@app.command("alter")
def alter(
    slug: Slug,
    columns: Annotated[
        list[str] | None, typer.Argument(help="New columns, name:type; they may be null.")
    ] = None,
    max_age: MaxAge = None,
    max_bytes: MaxBytes = None,
    lateness: Lateness = None,
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Add columns, or set how long rows are kept."""
    change = _options(max_age, max_bytes, lateness)
    if columns:
        change["schema"] = [_column(text) for text in columns]
    if not change:
        raise typer.BadParameter("give new columns, --max-age, --max-bytes or --lateness")
    client = Client.find(url, token, data_dir)
    _print(client.send("PATCH", f"{_PATH}/{slug}", json=change), as_json)


@app.command("delete")
def delete(slug: Slug, url: Url = None, token: Token = None, data_dir: DataDir = None) -> None:
    """Delete a dataset and its rows."""
    Client.find(url, token, data_dir).delete(f"{_PATH}/{slug}")
    print(f"deleted {slug}")


def ingest(
    slug: Slug,
    file: Annotated[
        str, typer.Argument(help="JSON, NDJSON, CSV, Parquet or Arrow, by its ending; - for stdin.")
    ],
    format: Annotated[
        str | None, typer.Option(help="json, ndjson, csv, parquet, arrow, where no ending tells.")
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Until the rows are in the table.")] = False,
    key: Annotated[
        str | None, typer.Option(help="Sent again with this key, rows come once.")
    ] = None,
    evolve: Annotated[bool, typer.Option(help="Take in columns the dataset does not have.")] = True,
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Send a file of rows into a dataset: all of them, or none with every reason."""
    media = _media(file, format)
    client = Client.find(url, token, data_dir)
    headers = {"Content-Type": media} | ({"Idempotency-Key": key} if key else {})
    params: dict[str, Any] = {"evolve": evolve}
    if wait:
        params |= {"wait": "committed", "timeoutSeconds": 50}
    with _opened(file) as source, client.http() as http:
        size = None if file == "-" else Path(file).stat().st_size
        with bytes_bar(f"ingest {file}", size, quiet=as_json) as advance:
            body = _pieces(source, advance)
            sent = http.post(f"{_PATH}/{slug}/ingest", content=body, headers=headers, params=params)
        found = read_answer(sent)
    if as_json:
        print(json.dumps(found))
    else:
        rows = counted(found["rows"], "row")
        print(f"{rows} {found['status']} as ingest {found['ingestId']}")


def _column(text: str) -> dict[str, Any]:
    name, _, kind = text.partition(":")
    if not kind:
        raise typer.BadParameter(f"{text!r} is no name:type, such as celsius:double")
    return {"name": name, "type": kind.rstrip("!"), "nullable": not kind.endswith("!")}


def _options(max_age: str | None, max_bytes: int | None, lateness: int | None) -> dict[str, Any]:
    pairs = {"maxAge": max_age, "maxBytes": max_bytes}
    retention = {name: value for name, value in pairs.items() if value is not None}
    given: dict[str, Any] = {"retention": retention} if retention else {}
    return given if lateness is None else {**given, "latenessSeconds": lateness}


def _media(file: str, format: str | None) -> str:
    ending = f".{format}" if format else Path(file).suffix.lower()
    if format == "arrow":
        ending = ".arrows"
    if ending not in EXTENSIONS:
        known = " ".join(sorted(EXTENSIONS))
        raise typer.BadParameter(
            f"what {file} holds is not known by its ending ({known}): --format"
        )
    return EXTENSIONS[ending]


def _opened(file: str) -> IO[bytes]:
    try:
        return sys.stdin.buffer if file == "-" else open(file, "rb")
    except OSError as error:
        raise typer.BadParameter(f"{file} cannot be read: {error.strerror}") from None


def _pieces(source: IO[bytes], advance: Callable[[int], None]) -> Iterator[bytes]:
    while piece := source.read(_PIECE_BYTES):
        yield piece
        advance(len(piece))


def _print(dataset: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print(json.dumps(dataset))
        return
    told = f"{dataset['slug']}: by {dataset['granularity']} of {dataset['timeColumn']}"
    print(f"{told}, kept {_kept(dataset)}, version {dataset['version']}")
    table = folding("column", "type", "null")
    for column in dataset["schema"]:
        table.add_row(column["name"], column["type"], "may be" if column["nullable"] else "never")
    Console().print(table)


def _kept(dataset: dict[str, Any]) -> str:
    limits = dataset["retention"]
    told = [limits["maxAge"]] if "maxAge" in limits else []
    told += [f"{limits['maxBytes']:,} bytes"] if "maxBytes" in limits else []
    return ", ".join(told) or "for ever"
