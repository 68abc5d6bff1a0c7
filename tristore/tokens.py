"""Bearer tokens: made once, kept as hashes, looked up with a short memory."""

import hashlib
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from psycopg.rows import class_row

from tristore.db.pool import Connection, Pool
from tristore.db.queries import load

_sql = load("tristore", "tokens.sql")

SCOPES = (
    "events:read",
    "events:publish",
    "events:admin",
    "filestore:read",
    "filestore:write",
    "filestore:admin",
    "metastore:read",
    "metastore:write",
    "metastore:delete",
    "metastore:admin",
    "timestore:read",
    "timestore:write",
    "timestore:admin",
)

# A revoked token may work this much longer; a lookup in Postgres per request is saved.
_REMEMBER_SECONDS = 5.0
_REMEMBER_MOST = 10_000


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks, and what they may do. An allow-list of None means no limit."""

    id: str
    name: str
    scopes: list[str]
    namespaces: list[str] | None
    mounts: list[str] | None
    datasets: list[str] | None

    @property
    def limited(self) -> bool:
        return not (self.namespaces is None and self.mounts is None and self.datasets is None)


def hashed(token: str) -> bytes:
    # Plain SHA-256 is enough: tokens are 256 random bits, there is no dictionary to try.
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


async def create(
    conn: Connection,
    name: str,
    scopes: Sequence[str],
    *,
    namespaces: Sequence[str] | None = None,
    mounts: Sequence[str] | None = None,
    datasets: Sequence[str] | None = None,
    expires_at: datetime | None = None,
) -> str:
    """Returns the token; it cannot be shown again."""
    token = "tri_" + secrets.token_urlsafe(32)
    row = {
        "name": name,
        "hash": hashed(token),
        "scopes": list(scopes),
        "namespaces": namespaces and list(namespaces),
        "mounts": mounts and list(mounts),
        "datasets": datasets and list(datasets),
        "expires_at": expires_at,
    }
    await conn.execute(_sql.add, row)
    return token


class Tokens:
    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._known: dict[bytes, tuple[float, Principal | None]] = {}

    async def find(self, token: str) -> Principal | None:
        """Found by hash in an index, so timing tells nothing about near misses."""
        key = hashed(token)
        known = self._known.get(key)
        if known and known[0] > time.monotonic():
            return known[1]
        principal = await self._ask(key)
        if len(self._known) >= _REMEMBER_MOST:
            self._known.clear()
        self._known[key] = (time.monotonic() + _REMEMBER_SECONDS, principal)
        return principal

    async def _ask(self, key: bytes) -> Principal | None:
        async with self._pool.connection() as conn:
            cursor = conn.cursor(row_factory=class_row(Principal))
            await cursor.execute(_sql.find, {"hash": key})
            return await cursor.fetchone()
