"""`tristore ts query` and `tristore ts sql`: ask the datasets."""

import json
import sys
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from tristore.cli.client import Client
from tristore.cli.options import AsJson, DataDir, From, Slug, To, Token, Url
from tristore.cli.tables import folding

_SQL = "/timestore/v1/sql"


def sql(
    statement: Annotated[str, typer.Argument(help="One SELECT, or - to read it from stdin.")],
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Run one SELECT over the datasets the token may read."""
    text = sys.stdin.read() if statement == "-" else statement
    answer = Client.find(url, token, data_dir).post(_SQL, {"sql": text})
    _show(answer, as_json, "there is more: narrow the query")


def query(
    slug: Slug,
    since: From = None,
    until: To = None,
    column: Annotated[
        list[str] | None, typer.Option("--column", "-c", help="Only this one; may come twice.")
    ] = None,
    filter: Annotated[
        list[str] | None,
        typer.Option(
            "--filter",
            "-f",
            help="column:op:value, e.g. celsius:gt:30, station:in:a,b, celsius:is_null; a text "
            "that looks like a number in quotes: 'code:eq:\"7\"'.",
        ),
    ] = None,
    group_by: Annotated[list[str] | None, typer.Option(help="A column; may come twice.")] = None,
    interval: Annotated[
        str | None, typer.Option(help="One row per this time: 30s, 5m, 1h, 1d.")
    ] = None,
    aggregate: Annotated[
        list[str] | None,
        typer.Option(
            "--aggregate", "-a", help="fn:column, e.g. avg:celsius, percentile@0.9:celsius, count."
        ),
    ] = None,
    fill: Annotated[
        str, typer.Option(help="Of empty intervals: none, null, previous, linear, a number.")
    ] = "none",
    limit: Annotated[int, typer.Option(min=1, max=10_000)] = 100,
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Ask one dataset: a time range, filters, groups, one row per interval."""
    body: dict[str, Any] = {"limit": limit}
    wanted = {"from": since, "to": until, "columns": column, "groupBy": group_by}
    body |= {name: value for name, value in wanted.items() if value}
    body["filters"] = [_filter(text) for text in filter or ()]
    if interval is None and aggregate:
        raise typer.BadParameter("--aggregate wants --interval")
    if interval is not None:
        aggregates = [_aggregate(text) for text in aggregate or ["count:*"]]
        body["downsample"] = {"interval": interval, "aggregates": aggregates, "fill": _value(fill)}
    client = Client.find(url, token, data_dir)
    answer = client.post(f"/timestore/v1/datasets/{slug}/query", body)
    _show(answer, as_json, "there is more: narrow the query, or raise --limit")


def _show(answer: dict[str, Any], as_json: bool, more: str) -> None:
    if as_json:
        print(json.dumps(answer))
        return
    table = folding(*(escape(column["name"]) for column in answer["columns"]))
    for row in answer["rows"]:
        table.add_row(*(escape(_cell(value)) for value in row))
    Console().print(table)
    if answer["truncated"]:
        print(more, file=sys.stderr)
    if answer["tailTruncated"]:
        print("the newest rows are left out; the pipeline is behind", file=sys.stderr)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return json.dumps(value) if isinstance(value, dict | list) else str(value)


def _filter(text: str) -> dict[str, Any]:
    column, operator, value = [*text.split(":", 2), "", ""][:3]
    found: dict[str, Any] = {"column": column, "op": operator}
    if operator in ("in", "between"):
        return found | {"value": [_value(part) for part in value.split(",")]}
    return found if operator == "is_null" and not value else found | {"value": _value(value)}


def _aggregate(text: str) -> dict[str, Any]:
    function, _, column = text.partition(":")
    name, _, share = function.partition("@")
    found: dict[str, Any] = {"fn": name} | ({"column": column} if column else {})
    try:
        return found | ({"p": float(share)} if share else {})
    except ValueError:
        raise typer.BadParameter(f"{text!r} has no share such as percentile@0.9") from None


def _value(text: str) -> Any:
    """Numbers and true/false as such; everything else is text."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return text if isinstance(value, dict | list) or value is None else value
