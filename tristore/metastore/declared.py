"""What a namespace declares for searches: paths with an index of their own, and text fields."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from tristore.db.pool import Connection
from tristore.db.queries import load
from tristore.metastore.fields import metadata_path

_sql = load("tristore.metastore", "search.sql")

# Where a namespace names no text fields, every text in its metadata is looked at, slowly.
_EVERY_TEXT: tuple[tuple[str, ...], ...] = ((),)
PREFIX = "declared_"


@dataclass(frozen=True, slots=True)
class Declared:
    namespace: str
    indexes: tuple[tuple[str, ...], ...]
    text_fields: tuple[tuple[str, ...], ...]

    @property
    def text_paths(self) -> str:
        """The text fields as the first argument of `metastore.record_text`."""
        return orjson.dumps(self.text_fields or _EVERY_TEXT).decode()


def index_name(namespace: str, kind: str, what: str) -> str:
    """A name that only this index has: whatever it holds is part of it."""
    made = hashlib.sha256(f"{namespace}\n{kind}\n{what}".encode("utf-8", "surrogatepass"))
    return f"{PREFIX}{kind}_{made.hexdigest()[:24]}"


async def read(
    conn: Connection, names: Sequence[str] | None, allowed: Sequence[str] | None
) -> list[Declared]:
    """Of some namespaces (None: all), those a token may see (None: all) and that exist."""
    given = {"names": _list(names), "allowed": _list(allowed)}
    rows: list[Any] = await (await conn.execute(_sql.namespaces, given)).fetchall()
    return [Declared(name, _paths(indexes), _paths(texts)) for name, indexes, texts in rows]


def _paths(given: list[Any]) -> tuple[tuple[str, ...], ...]:
    return tuple(map(metadata_path, given))


def _list(names: Sequence[str] | None) -> list[str] | None:
    return None if names is None else list(names)
