"""Bearer tokens: made once, kept as hashes, looked up with a short memory."""

import hashlib
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from psycopg.rows import class_row

from tristore.db.pool import Connection, Pool
from tristore.db.queries import load
from tristore.errors import InvalidRequest, NotFound

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
    def own_namespaces(self) -> list[str] | None:
        """Those it may use; None: all. Records tell of files on every mount, so a token that is
        limited to mounts has only the namespaces it names."""
        return [] if self.namespaces is None and self.mounts is not None else self.namespaces

    @property
    def limited(self) -> bool:
        return not (self.namespaces is None and self.mounts is None and self.datasets is None)


def hashed(token: str) -> bytes:
    # Plain SHA-256 is enough: tokens are 256 random bits, there is no dictionary to try.
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


@dataclass(frozen=True, slots=True)
class TokenRow:
    """What is kept of a token."""

    id: str
    name: str
    scopes: list[str]
    namespaces: list[str] | None
    mounts: list[str] | None
    datasets: list[str] | None
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None

    @property
    def state(self) -> str:
        if self.revoked_at is not None:
            return "revoked"
        over = self.expires_at is not None and self.expires_at <= datetime.now(UTC)
        return "expired" if over else "in use"


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


async def listed(conn: Connection) -> list[TokenRow]:
    cursor = conn.cursor(row_factory=class_row(TokenRow))
    return await (await cursor.execute(_sql.all)).fetchall()


async def revoke(conn: Connection, named: str) -> str:
    """Ends the token with this id or name and returns its id; it works a few seconds longer at
    most. A name that several tokens share must be told by id."""
    found = await (await conn.execute(_sql.named, {"named": named})).fetchall()
    if not found:
        raise NotFound(f"no token in use is called {named!r}; `tristore token list` shows them")
    if len(found) > 1:
        ids = ", ".join(str(row[0]) for row in found)
        raise InvalidRequest(f"{len(found)} tokens are called {named!r}; give an id: {ids}")
    token_id = str(found[0][0])
    await conn.execute(_sql.revoke, {"id": token_id})
    return token_id


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

    async def alive(self, ids: Sequence[str]) -> set[str]:
        """Those of the tokens that still hold, as the database says now."""
        async with self._pool.connection() as conn:
            cursor = await conn.execute(_sql.alive, {"ids": list(ids)})
            return {str(row[0]) for row in await cursor.fetchall()}

    async def _ask(self, key: bytes) -> Principal | None:
        async with self._pool.connection() as conn:
            cursor = conn.cursor(row_factory=class_row(Principal))
            await cursor.execute(_sql.find, {"hash": key})
            return await cursor.fetchone()
