"""What operators ask of the driver: left in Postgres, taken one by one, answered there."""

from dataclasses import dataclass
from typing import Any, Literal

import psycopg
from psycopg.types.json import Jsonb

from tristore.db.queries import load

_sql = load("tristore.pipeline", "requests.sql")

Action = Literal["close", "compact", "vacuum", "backfill"]


@dataclass(frozen=True, slots=True)
class Request:
    id: int
    action: Action
    arguments: dict[str, Any]
    attempts: int = 1


@dataclass(frozen=True, slots=True)
class State:
    state: str
    progress: dict[str, Any]
    result: Any
    error: str | None


def resume(database_url: str) -> None:
    """A driver that was killed left these; each may be done twice without harm."""
    with psycopg.connect(database_url) as conn:
        conn.execute(_sql.resume)
        conn.execute(_sql.sweep)


def take(database_url: str) -> Request | None:
    with psycopg.connect(database_url) as conn:
        row = conn.execute(_sql.take).fetchone()
    return None if row is None else Request(*row)


def tell_progress(database_url: str, request: Request, done: int, total: int) -> None:
    progress = Jsonb({"done": done, "total": total})
    with psycopg.connect(database_url) as conn:
        conn.execute(_sql.progress, {"id": request.id, "progress": progress})


def finish(database_url: str, request: Request, result: Any, error: str | None = None) -> None:
    given = {
        "id": request.id,
        "state": "completed" if error is None else "failed",
        "result": Jsonb(result),
        "error": error,
    }
    with psycopg.connect(database_url) as conn:
        conn.execute(_sql.finish, given)


def ask(database_url: str, action: Action, arguments: dict[str, Any]) -> int:
    with psycopg.connect(database_url) as conn:
        given = {"action": action, "arguments": Jsonb(arguments)}
        row = conn.execute(_sql.ask, given).fetchone()
    assert row is not None
    return int(row[0])


def state(database_url: str, request_id: int) -> State:
    with psycopg.connect(database_url) as conn:
        row = conn.execute(_sql.state, {"id": request_id}).fetchone()
    assert row is not None
    return State(*row)


def withdraw(database_url: str, request_id: int) -> bool:
    """False if a driver has taken it meanwhile."""
    with psycopg.connect(database_url) as conn:
        return conn.execute(_sql.withdraw, {"id": request_id}).rowcount == 1
