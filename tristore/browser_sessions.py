"""What a browser holds instead of a token: a session cookie, and tickets that open one socket."""

import secrets
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from psycopg.rows import class_row

from tristore.db.pool import Pool
from tristore.db.queries import load
from tristore.tokens import Principal, hashed

COOKIE = "tristore_session"
TICKET_SECONDS = 30.0
_sql = load("tristore", "browser_sessions.sql")


@dataclass(frozen=True, slots=True)
class Issued:
    """Shown once; only its hash is kept."""

    secret: str
    expires_at: datetime


class BrowserSessions:
    def __init__(self, pool: Pool, hours: float) -> None:
        self._pool = pool
        self._seconds = hours * 3600

    async def open(self, principal: Principal) -> Issued:
        return await self._issue(_sql.open, principal, self._seconds)

    async def find(self, cookie: str) -> Principal | None:
        return await self._principal(_sql.find, cookie)

    async def end(self, cookie: str) -> None:
        async with self._pool.connection() as conn:
            await conn.execute(_sql.end, {"hash": hashed(cookie)})

    async def issue_ticket(self, principal: Principal) -> Issued:
        return await self._issue(_sql.add_ticket, principal, TICKET_SECONDS)

    async def redeem(self, ticket: str) -> Principal | None:
        return await self._principal(_sql.redeem, ticket)

    async def _issue(self, query: str, principal: Principal, seconds: float) -> Issued:
        secret = secrets.token_urlsafe(32)
        row = {"hash": hashed(secret), "token_id": principal.id, "seconds": seconds}
        async with self._pool.connection() as conn:
            found = await (await conn.execute(query, row)).fetchone()
        return Issued(secret, cast(tuple[datetime], found)[0])

    async def _principal(self, query: str, secret: str) -> Principal | None:
        async with self._pool.connection() as conn:
            cursor: Any = conn.cursor(row_factory=class_row(Principal))
            await cursor.execute(query, {"hash": hashed(secret)})
            return cast(Principal | None, await cursor.fetchone())
