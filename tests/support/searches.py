"""Random records, filters and orders, kept in a database and in memory alike."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
from hypothesis import strategies as st
from psycopg.types.json import Jsonb

from tests.support.naive_search import Row, holds, ordered
from tristore.db.pool import Connection
from tristore.metastore import filters, search
from tristore.metastore.model import Record
from tristore.metastore.search import Page, Query

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
PLAIN, DECLARED = "plain", "declared"
INDEXES = ["metadata.a", 'metadata["a.b"].c']
TEXT_FIELDS = ["metadata.a", "metadata.b.a"]
LONG = "p" * 200

TEXTS = ["", "a", "ab", "abc", "B", "é", "\U0001f600", "\uffff", "red apple", "Apple pie", "red"]
LONG_TEXTS = [LONG[:199], LONG, LONG + "a", LONG + "b", LONG + "ab"]
KEYS = st.sampled_from(["a", "b", "c", "0", "-1", "a.b", "é", "$", "*"])
NUMBERS = st.sampled_from(
    [0, 1, -1, 1.0, 0.1234567890123456, 1.5, 2**53 + 1, -(2**63), 1e300, 4.611686018427388e18]
)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
TEXT = st.sampled_from(TEXTS + LONG_TEXTS) | st.text("abé", max_size=3)
SCALAR = st.none() | st.booleans() | NUMBERS | FLOATS | TEXT | st.integers(-3, 3)
JSON = st.recursive(
    SCALAR, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3)
)
METADATA = st.dictionaries(KEYS, JSON, max_size=5)
TAGS = st.sampled_from(["raw", "ra", "gold", "é", ""])
OWNERS = st.sampled_from([None, "ops", "opera", "Ops"])
TIMES = st.integers(0, 4).map(lambda n: NOW - timedelta(hours=n))


@st.composite
def contents(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "metadata": draw(METADATA),
        "tags": sorted(draw(st.sets(TAGS, max_size=3))),
        "owner": draw(OWNERS),
        "version": draw(st.integers(1, 4)),
        "created_at": draw(TIMES),
        "updated_at": draw(TIMES),
        "created_by": draw(st.sampled_from(["ann", "Bob"])),
        "updated_by": "ann",
        "deleted_at": draw(st.none() | st.none() | TIMES),
    }


PATHS = st.lists(KEYS, min_size=0, max_size=3).map(lambda keys: ["metadata", *keys])
NAMES = st.sampled_from(["key", "owner", "createdBy", "version", "createdAt", "deletedAt", "tags"])
TEXT_OPS = ["eq", "neq", "lt", "lte", "gt", "gte", "prefix", "contains"]
ISO_TIMES = TIMES.map(datetime.isoformat)


def of(ops: list[str], value: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[str, Any]]:
    one = st.tuples(st.sampled_from(ops), value)
    some = st.lists(value, max_size=3)
    pair = st.tuples(value, value).map(list)
    lists = st.tuples(st.just("in"), some)
    if "lt" in ops:
        lists |= st.tuples(st.just("between"), pair)
    return one | lists | st.tuples(st.just("exists"), st.booleans())


COMPARED = ["eq", "neq", "lt", "lte", "gt", "gte"]
CONDITIONS = {
    "key": of(TEXT_OPS, st.sampled_from(["", "k", "k1", "k10", "k2"])),
    "owner": of(TEXT_OPS, TEXT | OWNERS.filter(bool))
    | st.just(("eq", None))
    | st.just(("in", [None])),
    "createdBy": of(TEXT_OPS, st.sampled_from(["ann", "Bob", "B"])),
    "version": of(COMPARED, st.integers(0, 5) | FLOATS),
    "createdAt": of(COMPARED, ISO_TIMES),
    "deletedAt": of(COMPARED, ISO_TIMES) | st.just(("eq", None)),
    "tags": st.tuples(st.sampled_from(["array_contains", "prefix"]), TAGS)
    | st.tuples(st.sampled_from(["eq", "neq", "in"]), st.lists(TAGS, max_size=3))
    | st.tuples(st.just("exists"), st.booleans()),
}
NUMERIC = st.one_of(NUMBERS, FLOATS)
IN_JSON = (
    st.tuples(st.sampled_from(["eq", "neq"]), JSON)
    | st.tuples(st.just("in"), st.lists(JSON, max_size=3))
    | st.tuples(st.sampled_from(["lt", "lte", "gt", "gte"]), NUMERIC | TEXT)
    | st.tuples(st.just("between"), st.lists(NUMERIC, min_size=2, max_size=2))
    | st.tuples(st.just("between"), st.lists(TEXT, min_size=2, max_size=2))
    | st.tuples(st.sampled_from(["prefix", "contains"]), TEXT)
    | st.tuples(st.just("has_key"), KEYS)
    | st.tuples(st.just("array_contains"), SCALAR)
    | st.tuples(st.just("exists"), st.booleans())
)
WORDS = st.sampled_from(["red", "apple", "APPLE", "red apple", "apple red", "pie", "plum"])


def places(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[list[str], Any]]:
    """Every path into a record's metadata, with what stands there."""
    yield ["metadata", *path], value
    if isinstance(value, dict):
        inner = list(value.items())
    else:
        inner = [(str(n), item) for n, item in enumerate(value)] if isinstance(value, list) else []
    for key, item in inner:
        yield from places(item, (*path, key))


@st.composite
def aimed(draw: st.DrawFn, there: list[tuple[list[str], Any]]) -> dict[str, Any]:
    """A condition on something that is there, mostly true of it or just not."""
    path, value = draw(st.sampled_from(there))
    ops = ["eq", "neq", "exists"]
    if isinstance(value, str):
        ops += ["lt", "lte", "gt", "gte", "prefix", "contains"]
    elif isinstance(value, int | float) and not isinstance(value, bool):
        ops += ["lt", "lte", "gt", "gte"]
    op = draw(st.sampled_from(ops))
    cut = value[: draw(st.integers(0, 201))] if op in ("prefix", "contains") else value
    return {"field": path, "op": op, "value": op != "neq" if op == "exists" else cut}


@st.composite
def leaf(draw: st.DrawFn, there: list[tuple[list[str], Any]]) -> dict[str, Any]:
    kind = draw(st.sampled_from(["aimed"] * 6 + ["json"] * 3 + ["system"] * 3 + ["words"]))
    if kind == "aimed":
        return draw(aimed(there))
    if kind == "words":
        return {"field": "text", "op": "matches", "value": draw(WORDS)}
    name: Any = draw(PATHS if kind == "json" else NAMES)
    op, value = draw(IN_JSON if kind == "json" else CONDITIONS[name])
    return {"field": name, "op": op, "value": value}


def trees(there: list[tuple[list[str], Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.recursive(
        leaf(there),
        lambda inner: (
            st.fixed_dictionaries({"and": st.lists(inner, max_size=3)})
            | st.fixed_dictionaries({"or": st.lists(inner, max_size=3)})
            | st.fixed_dictionaries({"not": inner})
        ),
        max_leaves=6,
    ).filter(lambda tree: _depth(tree) <= filters.MAX_DEPTH)


SORTED = st.sampled_from(["key", "owner", "updatedAt", "version", "deletedAt", *INDEXES, "owner"])
SORT = st.tuples(SORTED | SORTED | PATHS, st.booleans())
# Mostly one field: only such an order can be walked along an index.
SORTS = st.lists(SORT, min_size=1, max_size=1) | st.lists(SORT, max_size=2)


def _depth(tree: dict[str, Any]) -> int:
    inner = tree.get("and") or tree.get("or") or ([tree["not"]] if "not" in tree else [])
    return 1 + max(map(_depth, inner), default=0)


@dataclass
class Store:
    """Records in a database, and the same in memory."""

    url: str
    conn: Connection
    runner: asyncio.Runner
    rows: list[Row] = field(default_factory=list, repr=False)

    def fill(self, records: list[tuple[str, dict[str, Any]]]) -> None:
        with psycopg.connect(self.url) as conn:
            conn.execute("DELETE FROM metastore.records")
            self.rows = [_insert(conn, n, *record) for n, record in enumerate(records)]

    def pages(self, query: Query) -> list[str]:
        return self.runner.run(all_pages(self.conn, query))

    def expected(self, query: Query) -> list[str]:
        found = [
            row
            for row in self.rows
            if (query.namespaces is None or row.record.namespace in query.namespaces)
            and (query.include_deleted or row.record.deleted_at is None)
            and holds(query.tree, row)
        ]
        return [row.record.key for row in ordered(found, query.sorts)]


def _insert(conn: Any, number: int, namespace: str, given: dict[str, Any]) -> Row:
    row = {**given, "namespace": namespace, "key": f"k{number}"}
    columns = ", ".join(row)
    values = ", ".join(f"%({name})s" for name in row)
    stored = {**row, "metadata": Jsonb(row["metadata"])}
    query = f"INSERT INTO metastore.records ({columns}) VALUES ({values}) RETURNING id"
    found = conn.execute(query, stored).fetchone()[0]
    paths = [("a",), ("b", "a")] if namespace == DECLARED else []
    return Row(found, Record(**{**row, "tags": tuple(row["tags"])}), paths)


async def all_pages(conn: Connection, query: Query) -> list[str]:
    found, cursor, counted = [], None, -1
    for number in range(1000):
        page = await one_page(conn, replace(query, cursor=cursor, count=number == 0))
        assert len(page.records) <= query.limit
        counted = counted if page.count is None else page.count
        found += [record.key for record in page.records]
        if (cursor := page.next_cursor) is None:
            assert counted == len(found)
            return found
    raise AssertionError("the pages do not end")


async def one_page(conn: Connection, query: Query) -> Page:
    async with conn.transaction():
        return await search.find(conn, query, None)


def declare(
    url: str, name: str, paths: list[str] | None = None, texts: list[str] | None = None
) -> None:
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute(
            "INSERT INTO metastore.namespaces (name, indexes, text_fields, created_by, updated_by)"
            " VALUES (%s, %s, %s, 'test', 'test') ON CONFLICT (name) DO UPDATE"
            " SET indexes = excluded.indexes, text_fields = excluded.text_fields",
            [name, Jsonb(paths or []), Jsonb(texts or [])],
        )
