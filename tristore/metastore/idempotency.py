"""Answers to writes that carry an Idempotency-Key, kept with their effect and given again."""

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import orjson
import psycopg

from tristore.db.pool import Connection
from tristore.db.queries import load
from tristore.errors import Busy, KeyConflict

_sql = load("tristore.metastore", "idempotency.sql")


@dataclass(frozen=True, slots=True)
class Answer:
    """`repeated`: the write happened before, and this is what it was answered then."""

    status: int
    body: Any
    etag: str | None = None
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class Attempt:
    """A write that may come twice: whose it is, its key, and what it asks for."""

    token_id: str
    key: str
    request_hash: bytes

    @classmethod
    def of(cls, token_id: str, key: str, *parts: bytes) -> "Attempt":
        # With their lengths: no two requests may run together into one text.
        told = b"".join(len(part).to_bytes(8, "big") + part for part in parts)
        return cls(token_id, key, hashlib.sha256(told).digest())


async def once(
    conn: Connection, attempt: Attempt | None, work: Callable[[], Awaitable[Answer]]
) -> Answer:
    """Does the work, unless it was done before. Call inside the transaction of its effect;
    `Busy` means that the same attempt is under way elsewhere: roll back and begin again."""
    if attempt is None:
        return await work()
    if known := await _find(conn, attempt):
        return known
    answer = await work()
    try:
        await _keep(conn, attempt, answer)
    except psycopg.errors.UniqueViolation:
        raise Busy("the same request is being worked on; try again") from None
    return answer


async def sweep(conn: Connection, keep_hours: float) -> int:
    return (await conn.execute(_sql.sweep, {"seconds": keep_hours * 3600})).rowcount


async def _find(conn: Connection, attempt: Attempt) -> Answer | None:
    given = {"token_id": attempt.token_id, "key": attempt.key}
    row: Any = await (await conn.execute(_sql.find, given)).fetchone()
    if row is None:
        return None
    request_hash, status, text = row
    if request_hash != attempt.request_hash:
        raise KeyConflict("that Idempotency-Key belongs to another request; use a new one")
    kept = orjson.loads(text)
    return Answer(status, kept["body"], kept["etag"], repeated=True)


async def _keep(conn: Connection, attempt: Attempt, answer: Answer) -> None:
    kept = orjson.dumps({"body": answer.body, "etag": answer.etag}).decode()
    row = {
        "token_id": attempt.token_id,
        "key": attempt.key,
        "request_hash": attempt.request_hash,
        "status": answer.status,
        "answer": kept,
    }
    await conn.execute(_sql.keep, row)
