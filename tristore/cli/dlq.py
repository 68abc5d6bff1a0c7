"""`tristore dlq`: dead letters, looked at, sent again, discarded."""

import json
import sys
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from tristore.cli.client import Client
from tristore.cli.document import document
from tristore.cli.options import AsJson, Cursor, DataDir, Limit, OnlyType, Token, Url
from tristore.cli.tables import cells, folding, of_one, show_page

app = typer.Typer(help="Dead letters: list, show, replay, discard.", no_args_is_help=True)

LetterId = Annotated[int, typer.Argument(min=1, help="The number of the dead letter.")]
Reason = Annotated[str | None, typer.Option(help="Only this reason.")]
Source = Annotated[str | None, typer.Option(help="Only this source, or prefix.*")]
From = Annotated[str | None, typer.Option("--from", help="Last seen at or after this time.")]
To = Annotated[str | None, typer.Option("--to", help="Last seen before this time.")]
_PATH = "/admin/dead-letters"


@app.command("list")
def show_all(
    reason: Reason = None,
    type: OnlyType = None,
    source: Source = None,
    since: From = None,
    until: To = None,
    state: Annotated[str, typer.Option(help="open, replayed, discarded or all.")] = "open",
    limit: Limit = 50,
    cursor: Cursor = None,
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Show dead letters, newest first."""
    wanted = {"reason": reason, "type": type, "source": source, "from": since, "to": until}
    page = Client.find(url, token, data_dir).get(
        _PATH, **wanted, state=state, limit=limit, cursor=cursor
    )
    if as_json:
        print(json.dumps(page))
        return
    table = folding("id", "last seen", "reason", "type", "source", "event", "times", "first error")
    for item in page["items"]:
        error = item["errors"][0] if item["errors"] else {"path": "", "message": ""}
        row = [item["id"], item["lastSeenAt"][:19], item["reason"], item["type"], item["source"]]
        row += [item["eventId"], item["attempts"], f"{error['path']} {error['message']}"[:80]]
        table.add_row(*cells(row))
    show_page(table, page)


@app.command("show")
def show(
    letter_id: LetterId,
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Show one dead letter with every violation and its bytes."""
    letter = Client.find(url, token, data_dir).get(f"{_PATH}/{letter_id}")
    if as_json:
        print(json.dumps(letter))
        return
    table = of_one()
    for name, value in letter.items():
        text = "\n".join(_line(e) for e in value) if name == "errors" else str(value)
        table.add_row(name, "" if value is None else escape(text))
    Console().print(table)


@app.command("replay")
def replay(
    letter_id: Annotated[int | None, typer.Argument(min=1, help="One dead letter.")] = None,
    payload: Annotated[
        str | None, typer.Option(help="Corrected payload: JSON, @file, or - for stdin.")
    ] = None,
    event: Annotated[
        str | None, typer.Option(help="Corrected event: JSON, @file, or - for stdin.")
    ] = None,
    reason: Reason = None,
    type: OnlyType = None,
    source: Source = None,
    since: From = None,
    until: To = None,
    everything: Annotated[bool, typer.Option("--all", help="Every open dead letter.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count.")] = False,
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Send dead letters again: one by its number, corrected if need be, or all that match."""
    wanted = {"reason": reason, "type": type, "source": source, "from": since, "to": until}
    wanted = {name: value for name, value in wanted.items() if value is not None}
    if (letter_id is not None) == bool(wanted or everything):
        raise typer.BadParameter("give one number, or filters (--reason, --type, …), or --all")
    client = Client.find(url, token, data_dir)
    if letter_id is not None:
        _replay_one(client, letter_id, {"payload": payload, "event": event}, as_json)
    elif dry_run:
        _count(client.post(f"{_PATH}/replay", {**wanted, "dryRun": True}), as_json)
    else:
        _replay_all(client, {**wanted, "all": everything}, as_json)


@app.command("discard")
def discard(
    letter_id: LetterId,
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Settle a dead letter for good; its row stays for the ledger."""
    letter = Client.find(url, token, data_dir).delete(f"{_PATH}/{letter_id}")
    print(json.dumps(letter) if as_json else f"discarded {letter['id']}")


def _replay_one(
    client: Client, letter_id: int, given: dict[str, str | None], as_json: bool
) -> None:
    body = {name: document(text, name) for name, text in given.items() if text is not None}
    if len(body) > 1:
        raise typer.BadParameter("give --payload or --event, not both")
    sent = client.post(f"{_PATH}/{letter_id}/replay", body)
    print(json.dumps(sent) if as_json else f"sent {sent['eventId']} ({sent['status']})")


def _replay_all(client: Client, body: dict[str, Any], as_json: bool) -> None:
    done: dict[str, list[Any]] = {"replayed": [], "refused": []}
    cursor: str | None = None
    while True:
        answer = client.post(f"{_PATH}/replay", {**body, "cursor": cursor, "limit": 500})
        for name, found in done.items():
            found += answer[name]
        cursor = answer["nextCursor"]
        if cursor is None:
            break
        print(f"{len(done['replayed'])} sent so far", file=sys.stderr)
    if as_json:
        print(json.dumps(done))
    else:
        print(f"sent {len(done['replayed'])}, refused {len(done['refused'])}")
        for item in done["refused"]:
            print(f"  {item['id']}: {item['detail']}")
    if done["refused"]:
        raise typer.Exit(1)


def _count(told: dict[str, Any], as_json: bool) -> None:
    first = ", ".join(map(str, told["firstIds"])) or "none"
    print(json.dumps(told) if as_json else f"{told['count']} would be sent; the first: {first}")


def _line(error: dict[str, str]) -> str:
    return f"{error['path'] or '/'}: {error['message']}"
