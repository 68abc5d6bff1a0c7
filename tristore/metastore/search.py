"""Searches over records: pages in a total order, and counts, at a cost that follows the matches."""

from collections.abc import Sequence
from dataclasses import dataclass

from tristore.db.pool import Connection
from tristore.db.queries import load
from tristore.errors import NotFound
from tristore.metastore import declared, filters, pages, walk
from tristore.metastore.compile import Texts
from tristore.metastore.declared import Declared
from tristore.metastore.fields import Kind
from tristore.metastore.filters import Node
from tristore.metastore.model import Record
from tristore.metastore.ordering import DEFAULT, Sort
from tristore.metastore.statement import Statement, Wanted

_sql = load("tristore.metastore", "search.sql")


@dataclass(frozen=True, slots=True)
class Query:
    """`namespaces` are those that were named; None searches all that the token may see."""

    namespaces: tuple[str, ...] | None = None
    tree: Node = filters.EVERYTHING
    sorts: tuple[Sort, ...] = DEFAULT
    limit: int = 100
    cursor: str | None = None
    include_deleted: bool = False
    count: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    """`count` is that of all pages, if it was asked for."""

    records: list[Record]
    next_cursor: str | None
    count: int | None = None


async def find(conn: Connection, query: Query, allowed: Sequence[str] | None) -> Page:
    """In a transaction of its own; `allowed` are the namespaces of the token."""
    wanted, texts = await _scope(conn, query, allowed)
    statement = Statement(wanted, texts)
    mark = pages.fingerprint(query.namespaces, query.tree, query.sorts, query.include_deleted)
    start = None if query.cursor is None else pages.read(query.cursor, mark, statement.keys)
    await conn.execute(_sql.limits)
    found = None
    if await walk.possible(conn, wanted):
        found = await walk.page(conn, statement, start, query.limit + 1)
    if found is None:
        found = await statement.filter_first(conn, start, query.limit + 1)
    shown = found[: query.limit]
    following = pages.write(mark, shown[-1].position) if len(found) > query.limit else None
    count = await statement.count(conn) if query.count else None
    return Page([item.record for item in shown], following, count)


async def _scope(
    conn: Connection, query: Query, allowed: Sequence[str] | None
) -> tuple[Wanted, Texts]:
    """The namespaces to look at: a name that is not there and one that the token may not see are
    found out by the same question."""
    seen: list[Declared] = []
    if query.namespaces is not None or _has_words(query.tree):
        seen = await declared.read(conn, query.namespaces, allowed)
    names = tuple(allowed) if allowed is not None else None
    if query.namespaces is not None:
        names = tuple(item.namespace for item in seen)
        if set(query.namespaces) - set(names):
            raise NotFound("there is no such namespace, or this token may not see it")
    wanted = Wanted(names, query.tree, query.sorts, query.include_deleted)
    return wanted, _texts(seen)


def _has_words(tree: Node) -> bool:
    return any(leaf.field.kind is Kind.WORDS for leaf in filters.leaves(tree))


def _texts(seen: Sequence[Declared]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for item in seen:
        found.setdefault(item.text_paths, []).append(item.namespace)
    return found
