"""`tristore ts datasets`: datasets listed, made, altered and deleted."""

import json
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from tristore.cli.client import Client
from tristore.cli.options import AsJson, Cursor, DataDir, Limit, Slug, Token, Url
from tristore.cli.tables import folding, show_page

app = typer.Typer(help="Datasets: list, create, show, alter, delete.", no_args_is_help=True)

MaxAge = Annotated[str | None, typer.Option(help="Keep rows so long: 90d, 12h, 4w.")]
MaxBytes = Annotated[int | None, typer.Option(min=1, help="Keep about so many bytes.")]
Lateness = Annotated[int | None, typer.Option(min=0, help="Seconds rows may come late.")]
PATH = "/timestore/v1/datasets"


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
    page = Client.find(url, token, data_dir).get(PATH, limit=limit, cursor=cursor)
    if as_json:
        print(json.dumps(page))
        return
    table = folding("dataset", "fed by", "time", "by", "columns", "kept")
    for item in page["items"]:
        columns = str(len(item["schema"]))
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
    _print(Client.find(url, token, data_dir).get(f"{PATH}/{slug}"), as_json)


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
    _print(Client.find(url, token, data_dir).post(PATH, body), as_json)


@app.command("alter")
def alter(
    slug: Slug,
    columns: Annotated[
        list[str] | None, typer.Argument(help="New columns, name:type; they may be null.")
    ] = None,
    max_age: MaxAge = None,
    max_bytes: MaxBytes = None,
    lateness: Lateness = None,
    keep_all: Annotated[
        bool, typer.Option("--keep-all", help="Lift the limits of age and size there were.")
    ] = False,
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Add columns, or set how long rows are kept."""
    change = ({"retention": {}} if keep_all else {}) | _options(max_age, max_bytes, lateness)
    if columns:
        change["schema"] = [_column(text) for text in columns]
    if not change:
        raise typer.BadParameter(
            "give new columns, --max-age, --max-bytes, --keep-all or --lateness"
        )
    client = Client.find(url, token, data_dir)
    if "retention" in change and not keep_all:
        # PATCH sets it whole: a limit that was not named would be gone.
        before = client.get(f"{PATH}/{slug}")["retention"]
        change["retention"] = {**before, **change["retention"]}
    _print(client.send("PATCH", f"{PATH}/{slug}", json=change), as_json)


@app.command("delete")
def delete(
    slug: Slug,
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Delete a dataset and its rows."""
    Client.find(url, token, data_dir).delete(f"{PATH}/{slug}")
    print(json.dumps({"deleted": slug}) if as_json else f"deleted {slug}")


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
