"""`tristore token`: who may do what, by the database itself."""

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import typer
from rich.console import Console

from tristore import tokens
from tristore.cli.database import with_connection
from tristore.cli.options import AsJson, DataDir
from tristore.cli.tables import folding
from tristore.db.pool import Connection

app = typer.Typer(help="Tokens: create, list, revoke.", no_args_is_help=True)

_LENGTH = re.compile(r"([1-9][0-9]{0,4})([mhdw])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
Names = Annotated[list[str] | None, typer.Option(help="Limit to this one; may be repeated.")]


@app.command("create")
def create(
    name: Annotated[str, typer.Argument(help="What the token is for.")],
    scope: Annotated[list[str], typer.Option(help="A right; may be repeated, or `all`.")],
    namespace: Names = None,
    mount: Names = None,
    dataset: Names = None,
    expires: Annotated[
        str | None, typer.Option(help="30d, 12h, 45m, 2w, or a time; without it: never.")
    ] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Make a token. It is shown once and cannot be shown again."""
    _check_name(name)
    ends = _expiry(expires)
    limits = {"namespaces": namespace, "mounts": mount, "datasets": dataset}
    limits = {kind: _names(given) for kind, given in limits.items()}
    scopes = _scopes(scope)

    async def work(conn: Connection) -> str:
        return await tokens.create(
            conn,
            name,
            scopes,
            namespaces=limits["namespaces"],
            mounts=limits["mounts"],
            datasets=limits["datasets"],
            expires_at=ends,
        )

    made = with_connection(data_dir, work)
    shown = {"name": name, "token": made, "scopes": scopes, **limits, "expiresAt": _time(ends)}
    print(json.dumps(shown) if as_json else made)


@app.command("list")
def show(data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Show every token; never the token itself."""
    items = [_item(row) for row in with_connection(data_dir, tokens.listed)]
    if as_json:
        print(json.dumps({"items": items}))
        return
    table = folding("name", "state", "scopes", "limited to", "expires", "id")
    for item in items:
        limits = [f"{kind}: {', '.join(item[kind])}" for kind in _LIMITS if item[kind] is not None]
        ends = item["expiresAt"] or "never"
        scopes = "all" if len(item["scopes"]) == len(tokens.SCOPES) else " ".join(item["scopes"])
        table.add_row(item["name"], item["state"], scopes, "; ".join(limits), ends, item["id"])
    Console().print(table)


@app.command("revoke")
def revoke(
    token: Annotated[str, typer.Argument(help="Its id or its name.")],
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """End a token for good; open connections close within a minute."""
    ended = with_connection(data_dir, lambda conn: tokens.revoke(conn, token))
    print(json.dumps({"id": ended, "revoked": True}) if as_json else f"revoked {ended}")


_LIMITS = ("namespaces", "mounts", "datasets")
_LONGEST_NAME = 200


def _item(row: tokens.TokenRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "name": row.name,
        "state": row.state,
        "scopes": row.scopes,
        "namespaces": row.namespaces,
        "mounts": row.mounts,
        "datasets": row.datasets,
        "createdAt": _time(row.created_at),
        "expiresAt": _time(row.expires_at),
        "revokedAt": _time(row.revoked_at),
    }


def _check_name(name: str) -> None:
    """It goes into every event its holder causes, and those take no longer one."""
    if not (name.strip() and name.isprintable() and len(name) <= _LONGEST_NAME):
        raise typer.BadParameter(f"a token's name has 1 to {_LONGEST_NAME} printable characters")


def _scopes(given: list[str]) -> list[str]:
    if given == ["all"]:
        return list(tokens.SCOPES)
    if unknown := [scope for scope in given if scope not in tokens.SCOPES]:
        known = ", ".join(tokens.SCOPES)
        raise typer.BadParameter(f"unknown: {', '.join(unknown)}; known: all, {known}")
    return list(dict.fromkeys(given))


def _names(given: list[str] | None) -> list[str] | None:
    for name in given or []:
        if not _NAME.fullmatch(name):
            raise typer.BadParameter(f"{name!r}: lower case letters, digits, - and _, at most 63")
    return given or None


def _expiry(text: str | None) -> datetime | None:
    if text is None:
        return None
    if length := _LENGTH.fullmatch(text):
        return datetime.now(UTC) + timedelta(**{_UNITS[length[2]]: int(length[1])})
    try:
        ends = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r}: write 30d, 12h, 45m, 2w or a time") from None
    ends = ends if ends.tzinfo else ends.replace(tzinfo=UTC)
    if ends <= datetime.now(UTC):
        raise typer.BadParameter(f"{text} is over already")
    return ends


def _time(value: datetime | None) -> str | None:
    if value is None:
        return None
    return value.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
