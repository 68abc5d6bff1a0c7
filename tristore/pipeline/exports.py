"""The exports in Postgres: taken one by one, followed, completed with their event, or failed."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from secrets import token_hex
from typing import Any, get_args

import psycopg
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from tristore.db.queries import load
from tristore.errors import AlreadyExists, InvalidRequest, NotFound
from tristore.events.payloads import ExportFormat, TimestoreDatasetExported
from tristore.pipeline import ledger
from tristore.pipeline.export_files import Written

_sql = load("tristore.pipeline", "exports.sql")
_TARGET = re.compile(r"[a-z0-9][a-z0-9_-]{0,99}")


@dataclass(frozen=True, slots=True)
class Export:
    id: int
    dataset: str
    format: ExportFormat
    target: str
    start: datetime | None
    end: datetime | None
    attempts: int
    correlation_id: str | None


def resume(database_url: str) -> None:
    with psycopg.connect(database_url) as conn:
        conn.execute(_sql.resume)


def take(database_url: str, reached: Mapping[str, datetime]) -> Export | None:
    """`reached`: up to when each dataset holds everything."""
    given = {"reached": json.dumps(dict(reached), default=str)}
    with psycopg.connect(database_url) as conn:
        row = conn.execute(_sql.take, given).fetchone()
    return None if row is None else Export(*row)


def claim(database_url: str, export_id: int) -> Export | None:
    """This one and no other, while nobody has it."""
    with psycopg.connect(database_url) as conn:
        row = conn.execute(_sql.claim, {"id": export_id}).fetchone()
    return None if row is None else Export(*row)


def queue(
    database_url: str,
    dataset: str,
    format: str,
    target: str | None,
    bounds: tuple[str | None, str | None],
) -> int:
    """An export that an operator asks for."""
    if format not in get_args(ExportFormat):
        raise InvalidRequest(f"the format is one of {', '.join(get_args(ExportFormat))}")
    if target is not None and not _TARGET.fullmatch(target):
        raise InvalidRequest("a target is a name of small letters, digits, - and _")
    name = target or f"{dataset}-{datetime.now(UTC):%Y%m%dT%H%M%S}-{token_hex(4)}"
    times = {"from_time": bounds[0], "to_time": bounds[1]}
    given = {"dataset": dataset, "format": format, "target": name, **times}
    try:
        with psycopg.connect(database_url) as conn:
            row = conn.execute(_sql.queue, given).fetchone()
    except psycopg.errors.ForeignKeyViolation:
        raise NotFound(f"there is no dataset {dataset!r}") from None
    if row is None:
        raise AlreadyExists(f"there is an export called {name}; choose another target")
    return int(row[0])


def state(database_url: str, export_id: int) -> dict[str, Any]:
    with psycopg.connect(database_url, row_factory=dict_row) as conn:
        row = conn.execute(_sql.state, {"id": export_id}).fetchone()
    assert row is not None
    return row


def tell_progress(database_url: str, export: Export, done: int, total: int) -> None:
    progress = Jsonb({"partsDone": done, "partsTotal": total})
    with psycopg.connect(database_url) as conn:
        conn.execute(_sql.progress, {"id": export.id, "progress": progress})


def complete(database_url: str, export: Export, where: str, written: Written, version: int) -> None:
    payload = TimestoreDatasetExported(
        dataset=export.dataset,
        export_id=str(export.id),
        format=export.format,
        target=where,
        rows=written.rows,
        bytes=written.bytes,
        files=written.files,
        from_=export.start,
        to=export.end,
    )
    given = {
        "id": export.id,
        "rows": written.rows,
        "bytes": written.bytes,
        "files": written.files,
        "version": version,
    }
    told = ledger.row_of(payload, export.correlation_id)
    with psycopg.connect(database_url) as conn:
        conn.execute(_sql.complete, {**given, **told})
    ledger.wake_relay(database_url)


def fail(database_url: str, export: Export, error: str, *, for_good: bool) -> None:
    with psycopg.connect(database_url) as conn:
        conn.execute(_sql.fail, {"id": export.id, "error": error, "for_good": for_good})
