"""`tristore events`: publish, find, watch and print events."""

import json
import sys
import time
from collections.abc import Iterator
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tristore.cli.client import Client
from tristore.cli.options import AsJson, Cursor, DataDir, Limit, Token, Url
from tristore.cli.outgoing import Outgoing
from tristore.cli.tables import folding
from tristore.errors import Terminal, Unavailable

app = typer.Typer(help="Events: publish, list, tail, replay.", no_args_is_help=True)

Type = Annotated[str | None, typer.Option("--type", help="This type, or prefix.*")]
Source = Annotated[str | None, typer.Option(help="This source, or prefix.*")]
_RETRY_SECONDS = (0.5, 1.0, 2.0, 5.0)


@app.command("publish")
def publish(
    type: Annotated[
        str | None, typer.Argument(help="Type; without it, stdin has one whole event a line.")
    ] = None,
    payload: Annotated[
        str, typer.Argument(help="JSON, @file, or - for one payload a line on stdin.")
    ] = "-",
    source: Annotated[str, typer.Option(help="Who publishes.")] = "cli",
    event_id: Annotated[str | None, typer.Option("--id", help="Id; made if not given.")] = None,
    correlation_id: Annotated[str | None, typer.Option(help="Ties events together.")] = None,
    ttl: Annotated[int | None, typer.Option(min=1, help="Milliseconds it is good for.")] = None,
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Publish an event, or one for each line on stdin. Ids are fixed before the first try, so
    what is tried again is never stored twice."""
    fields = {"source": source, "correlationId": correlation_id, "ttl": ttl}
    outgoing = Outgoing(Client.find(url, token, data_dir), fields)
    if type is not None and payload != "-":
        results = outgoing.one(type, payload, event_id)
    else:
        results = outgoing.lines(sys.stdin.buffer, type)
    _tell(results, as_json)


@app.command("list")
def show(
    type: Type = None,
    source: Source = None,
    correlation_id: Annotated[str | None, typer.Option(help="Only these.")] = None,
    since: Annotated[str | None, typer.Option("--from", help="Happened at or after.")] = None,
    until: Annotated[str | None, typer.Option("--to", help="Happened before.")] = None,
    json_path: Annotated[str | None, typer.Option(help="""As $.a.b == "x".""")] = None,
    order: Annotated[str, typer.Option(help="desc or asc.")] = "desc",
    limit: Limit = 50,
    cursor: Cursor = None,
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Find events in the log, newest first."""
    wanted = {"correlationId": correlation_id, "from": since, "to": until, "jsonPath": json_path}
    page = Client.find(url, token, data_dir).get(
        "/admin/events",
        **wanted,
        type=type,
        source=source,
        order=order,
        limit=limit,
        cursor=cursor,
    )
    if as_json:
        print(json.dumps(page))
        return
    Console().print(_table(page["items"]))
    if page["nextCursor"]:
        seen = f" ({page['scanned']} events examined so far)" if "scanned" in page else ""
        print(f"more{seen}: --cursor {page['nextCursor']}")


@app.command("tail")
def tail(
    type: Annotated[list[str] | None, typer.Option("--type", help="May be repeated.")] = None,
    since: Annotated[int | None, typer.Option(min=0, help="After this sequence; else now.")] = None,
    count: Annotated[int | None, typer.Option(min=1, help="End after so many.")] = None,
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Watch events arrive; goes on where it was after any interruption. Ctrl-C ends it."""
    from tristore.cli.watching import frames

    client = Client.find(url, token, data_dir)
    try:
        for number, event in enumerate(frames(client, type or [], since), 1):
            print(json.dumps(event) if as_json else _line(event), flush=True)
            if number == count:
                return
    except (KeyboardInterrupt, BrokenPipeError):
        raise typer.Exit(0) from None


@app.command("replay")
def replay(
    start: Annotated[str, typer.Option("--from", help="First sequence, or a time.")] = "0",
    end: Annotated[str | None, typer.Option("--to", help="Last sequence, or a time.")] = None,
    type: Type = None,
    source: Source = None,
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = None,
) -> None:
    """Print a range of the log in order, one event a line, for other programs."""
    wanted = {**_bound(start, "fromSequence", "from"), **_bound(end, "toSequence", "to")}
    client = Client.find(url, token, data_dir)
    try:
        for event in _range(client, {**wanted, "type": type, "source": source}):
            sys.stdout.write(json.dumps(event) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has had enough; Python would complain again when it closes stdout.
        sys.stderr.close()
        raise typer.Exit(0) from None


def _range(client: Client, wanted: dict[str, Any]) -> Iterator[dict[str, Any]]:
    cursor: str | None = None
    while True:
        page = _again(client, {**wanted, "order": "asc", "limit": 1000, "cursor": cursor})
        yield from page["items"]
        cursor = page["nextCursor"]
        if cursor is None:
            return


def _again(client: Client, params: dict[str, Any]) -> Any:
    """A page, asked for again while the platform is away for a moment."""
    for pause in _RETRY_SECONDS:
        try:
            return client.get("/admin/events", **params)
        except Unavailable:
            time.sleep(pause)
    return client.get("/admin/events", **params)


def _bound(text: str | None, sequence: str, instant: str) -> dict[str, str]:
    if text is None:
        return {}
    return {sequence if text.isascii() and text.isdigit() else instant: text}


def _tell(results: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print(json.dumps(results))
    elif len(results["results"]) == 1:
        (only,) = results["results"]
        print(f"{only['status']} {only['id']}")
    else:
        kinds = [item["status"] for item in results["results"]]
        print(", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds)) or "none")
    if results["refused"]:
        lines = "; ".join(f"line {r['line']}: {r['detail']}" for r in results["refused"][:10])
        raise Terminal(f"{len(results['refused'])} refused: {lines}")


def _line(event: dict[str, Any]) -> str:
    payload = json.dumps(event["payload"])
    shown = payload if len(payload) <= 120 else payload[:117] + "..."
    return f"{event['ingressSequence']:>8}  {event['type']}  {event['source']}  {shown}"


def _table(items: list[dict[str, Any]]) -> Table:
    table = folding("sequence", "occurred", "type", "source", "id", "payload")
    for item in items:
        payload = json.dumps(item["payload"])
        row = [item["ingressSequence"], item["occurredAt"][:23], item["type"], item["source"]]
        row += [item["id"], payload if len(payload) <= 100 else payload[:97] + "..."]
        table.add_row(*(escape(str(cell)) for cell in row))
    return table
