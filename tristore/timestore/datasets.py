"""The catalogue of datasets: found, listed, made, altered and deleted."""

import hashlib
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from psycopg.errors import UniqueViolation
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from tristore.db.pool import Connection, Pool
from tristore.db.queries import load
from tristore.errors import AlreadyExists, KeyConflict, NotFound
from tristore.timestore.dataset import SLUG, Dataset, Granularity
from tristore.timestore.retention import Retention
from tristore.timestore.schemas import Column, check

_sql = load("tristore.timestore", "datasets.sql")
# What is left of a dataset that goes, so that another of its name does not meet it.
_FORGET = (_sql.fail_staged, _sql.fail_exports, _sql.release_keys, _sql.forget_partitions)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a new dataset is to be."""

    slug: str
    time_column: str
    granularity: Granularity
    columns: tuple[Column, ...]
    retention: Retention
    lateness_seconds: int
    read_scope: str
    write_scope: str

    def checked(self) -> "Wanted":
        return replace(self, columns=check(self.columns, self.time_column))

    def digest(self) -> bytes:
        return hashlib.sha256(repr(self).encode()).digest()


@dataclass(frozen=True, slots=True)
class Maker:
    """Who asks for a new dataset, and under which key."""

    principal: str
    token_id: str
    key: str | None


class Datasets:
    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def find(self, slug: str) -> Dataset | None:
        """Also a deleted one: ask `active`."""
        if not SLUG.fullmatch(slug):
            return None
        async with self._pool.connection() as conn:
            return await find(conn, slug)

    async def get(self, slug: str) -> Dataset:
        found = await self.find(slug)
        if found is None or not found.active:
            raise NotFound("there is no such dataset")
        return found

    async def list(
        self,
        *,
        after: str = "",
        limit: int = 1000,
        only: Sequence[str] | None = None,
        scopes: Sequence[str] | None = None,
    ) -> list[Dataset]:
        """Live datasets by name; `only` and `scopes` (of the reader) narrow them."""
        given = {"after": after, "limit": limit, "only": _listed(only), "scopes": _listed(scopes)}
        async with self._pool.connection() as conn:
            cursor = conn.cursor(row_factory=dict_row)
            rows = await (await cursor.execute(_sql.page, given)).fetchall()
        return [Dataset.of(row) for row in rows]

    async def create(self, wanted: Wanted, maker: Maker) -> tuple[Dataset, bool]:
        """The dataset, and whether it was asked for before under the same key."""
        row = {
            "slug": wanted.slug,
            "time_column": wanted.time_column,
            "granularity": wanted.granularity,
            "folder": f"{wanted.slug}-{secrets.token_hex(4)}",
            "actor": maker.principal,
            "token_id": maker.token_id,
            "key": maker.key,
            "request_hash": wanted.digest(),
            **_changeable(wanted),
        }
        try:
            async with self._pool.connection() as conn, conn.transaction():
                made = await (await conn.execute(_sql.create, row)).fetchone()
                if made is not None:
                    return await _existing(conn, wanted.slug), False
        except UniqueViolation:
            pass  # the key is of another dataset, or of this one since a moment ago
        async with self._pool.connection() as conn:
            return await _earlier(conn, wanted.slug, row), True

    async def alter(self, slug: str, change: Callable[[Dataset], Dataset], actor: str) -> Dataset:
        """What `change` makes of the dataset as it stands, while nobody else changes it."""
        async with self._pool.connection() as conn, conn.transaction():
            before = await lock(conn, slug)
            if before is None or not before.active:
                raise NotFound("there is no such dataset")
            return await alter(conn, before, change(before), actor)

    async def delete(self, slug: str, actor: str) -> None:
        """It is gone for readers at once; its files go with the next vacuum."""
        async with self._pool.connection() as conn, conn.transaction():
            before = await lock(conn, slug)
            if before is None or not before.active:
                raise NotFound("there is no such dataset")
            for query in _FORGET:
                await conn.execute(query, {"slug": slug})
            await conn.execute(_sql.delete, {"slug": slug, "actor": actor})


async def find(conn: Connection, slug: str) -> Dataset | None:
    return await _one(conn, _sql.find, slug)


async def lock(conn: Connection, slug: str) -> Dataset | None:
    """Nobody else changes it, or stages rows for it, until the transaction ends."""
    return await _one(conn, _sql.lock, slug)


async def share(conn: Connection, slug: str) -> Dataset | None:
    """Nobody changes it until the transaction ends."""
    return await _one(conn, _sql.share, slug)


async def alter(conn: Connection, before: Dataset, after: Dataset, actor: str) -> Dataset:
    """In the caller's transaction, which has locked it; a change to nothing is none."""
    if before == after:
        return before
    row = {"slug": before.slug, "actor": actor, **_changeable(after)}
    await conn.execute(_sql.alter, row)
    return await _existing(conn, before.slug)


async def _earlier(conn: Connection, slug: str, row: dict[str, Any]) -> Dataset:
    known = await (await conn.execute(_sql.by_key, row)).fetchone()
    if known is None:
        raise AlreadyExists(f"there is a dataset {slug}; PATCH it, or take another slug")
    if known != (slug, row["request_hash"]):
        raise KeyConflict("that Idempotency-Key belongs to another request; use a new one")
    return await _existing(conn, slug)


async def _existing(conn: Connection, slug: str) -> Dataset:
    found = await find(conn, slug)
    assert found is not None
    return found


async def _one(conn: Connection, query: str, slug: str) -> Dataset | None:
    cursor = conn.cursor(row_factory=dict_row)
    row = await (await cursor.execute(query, {"slug": slug})).fetchone()
    return None if row is None else Dataset.of(row)


def _changeable(given: Wanted | Dataset) -> dict[str, Any]:
    return {
        "schema": Jsonb([column.to_json() for column in given.columns]),
        "retention": Jsonb(given.retention.to_json()),
        "lateness_seconds": given.lateness_seconds,
        "read_scope": given.read_scope,
        "write_scope": given.write_scope,
    }


def _listed(given: Sequence[str] | None) -> "list[str] | None":
    return None if given is None else [*given]
