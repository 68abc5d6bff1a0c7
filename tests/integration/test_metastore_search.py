"""Searches: every filter, order and plan finds what a plain loop finds, page by page."""

import asyncio
import base64
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import orjson
import psycopg
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from psycopg import AsyncConnection

from tests.support.api import own_database
from tests.support.database import rows, value
from tests.support.searches import (
    DECLARED,
    INDEXES,
    NOW,
    PLAIN,
    SORTS,
    TEXT_FIELDS,
    Store,
    contents,
    declare,
    one_page,
    places,
    trees,
)
from tristore.db.deadline import connection_within
from tristore.db.pool import make_pool
from tristore.errors import InvalidQuery, TooBroad
from tristore.metastore import filters, indexes, ordering, search, walk
from tristore.metastore.search import Query
from tristore.metastore.search_api import ADVICE

MANY = 20_000


@pytest.fixture(scope="module")
def database(server_url: str) -> Iterator[str]:
    with own_database(server_url) as url:
        yield url


@pytest.fixture(scope="module")
def store(database: str) -> Iterator[Store]:
    declare(database, PLAIN)
    declare(database, DECLARED, INDEXES, TEXT_FIELDS)
    with asyncio.Runner() as runner:
        conn = runner.run(AsyncConnection.connect(database, autocommit=True))
        assert runner.run(indexes.settle(conn))
        yield Store(database, conn, runner)
        runner.run(conn.close())


# Not shrunk: with a database behind it that takes longer than a test may.
@pytest.mark.filterwarnings("ignore:Generating overly large repr")
@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
@given(data=st.data())
def test_every_search_finds_what_a_plain_loop_finds(store: Store, data: st.DataObject) -> None:
    """Short scans, so that walks are given up, continued and finished."""
    names = st.sampled_from([PLAIN, DECLARED])
    store.fill(data.draw(st.lists(st.tuples(names, contents()), min_size=1, max_size=18)))
    there = [place for row in store.rows for place in places(row.record.metadata)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(walk, "FIRST_SCAN", data.draw(st.sampled_from([1, 3, 2000])))
        patch.setattr(walk, "MOST_SCANNED", data.draw(st.sampled_from([1, 6, 20_000])))
        for _ in range(4):
            query = Query(
                namespaces=data.draw(st.sampled_from([None, (PLAIN,), (DECLARED,), (DECLARED,)])),
                tree=filters.parse(data.draw(trees(there))),
                sorts=ordering.parse(data.draw(SORTS)),
                limit=data.draw(st.sampled_from([2, 7, 1000, 1000])),
                include_deleted=data.draw(st.sampled_from([False, False, True])),
            )
            assert store.pages(query) == store.expected(query)


def test_paging_shows_what_stays_once_while_records_come_change_and_go(store: Store) -> None:
    """Records that nobody touches are all there, each once, in order, by every kind of plan."""
    kinds = [{"a": 1}, {"a": 2.5}, {"a": "x"}, {"a": True}, {"a": None}, {}]
    contents = [some(metadata=kinds[n % 6], owner=[None, "ops"][n % 2]) for n in range(40)]
    for sort in ("key", "updatedAt", "owner", "metadata.a", "metadata.none"):
        for down in (False, True):
            store.fill([(DECLARED, content) for content in contents])
            query = Query((DECLARED,), sorts=ordering.parse([(sort, down)]), limit=3)
            staying = {row.record.key for row in store.rows[10:]}
            found = store.runner.run(_paged_while_written(store, query))
            shown = [key for key in found if key in staying]
            assert shown == [key for key in store.expected(query) if key in staying], (sort, down)


def some(**given: Any) -> dict[str, Any]:
    times = {"created_at": NOW, "updated_at": NOW, "created_by": "ann", "updated_by": "ann"}
    rest = {"metadata": {"a": 1}, "tags": [], "owner": None, "version": 1, "deleted_at": None}
    return {**times, **rest, **given}


@pytest.mark.parametrize("namespace", [PLAIN, DECLARED])
def test_numbers_are_compared_to_the_last_digit(store: Store, namespace: str) -> None:
    numbers = [0.1 + 0.2, 0.3, 2**53 + 1, 2**53, 4.611686018427388e18, 1e300, 5e-324]
    store.fill([(namespace, some(metadata={"a": number})) for number in numbers])
    for place, number in enumerate(numbers):
        for op, asked in (("eq", number), ("between", [number, number]), ("in", [number])):
            tree = filters.parse({"field": "metadata.a", "op": op, "value": asked})
            assert store.pages(Query((namespace,), tree)) == [f"k{place}"], (op, number)


async def _paged_while_written(store: Store, query: Query) -> list[str]:
    found: list[str] = []
    cursor = None
    for number in range(100):
        page = await one_page(store.conn, replace(query, cursor=cursor))
        found += [record.key for record in page.records]
        if (cursor := page.next_cursor) is None:
            return found
        await _write_elsewhere(store, number)
    raise AssertionError("the pages do not end")


async def _write_elsewhere(store: Store, number: int) -> None:
    touched = store.rows[number % 10].id
    await store.conn.execute(
        "UPDATE metastore.records SET updated_at = updated_at + %s, owner = %s, "
        "metadata = jsonb_build_object('a', %s::int) WHERE id = %s",
        [timedelta(seconds=number), f"o{number}", number, touched],
    )
    if number % 3 == 0:
        await store.conn.execute("DELETE FROM metastore.records WHERE id = %s", [touched])
    await store.conn.execute(
        "INSERT INTO metastore.records (namespace, key, metadata, created_by, updated_by) "
        "VALUES (%s, %s, '{}', 'x', 'x') ON CONFLICT DO NOTHING",
        [DECLARED, f"new{number}"],
    )


def test_a_cursor_of_another_search_or_maker_is_refused(store: Store) -> None:
    store.fill([(PLAIN, some()) for _ in range(5)])
    query = Query((PLAIN,), sorts=ordering.parse([("version", False)]), limit=2)
    cursor = store.runner.run(one_page(store.conn, query)).next_cursor
    assert cursor is not None
    mark, values, number = orjson.loads(base64.urlsafe_b64decode(cursor + "=="))
    forged = [[mark, ["NaN"], 1], [mark, ["1E+99999"], 1], [mark, [None], 1], [mark, [1], 1]]
    forged += [[mark, values, -1], [mark, values, "1"], [mark, values, 2**63], [mark, [], number]]
    bad = ["", "!", "AAAA", "W10", "bnVsbA", cursor[:-4], "é", *map(_cursor, forged)]
    for text in bad:
        with pytest.raises(InvalidQuery):
            store.runner.run(one_page(store.conn, replace(query, cursor=text)))
    for other in (replace(query, include_deleted=True), replace(query, namespaces=(DECLARED,))):
        with pytest.raises(InvalidQuery, match="another search"):
            store.runner.run(one_page(store.conn, replace(other, cursor=cursor)))


def _cursor(value: Any) -> str:
    return base64.urlsafe_b64encode(orjson.dumps(value)).decode().rstrip("=")


def test_indexes_come_and_go_as_they_are_declared(database: str, store: Store) -> None:
    """Also one whose making was cut short, which Postgres leaves behind, is made again."""

    def made() -> dict[str, bool]:
        query = (
            "SELECT c.relname AS name, i.indisvalid AS whole FROM pg_index i JOIN pg_class c "
            "ON c.oid = i.indexrelid WHERE starts_with(c.relname, 'declared_')"
        )
        return {row["name"]: row["whole"] for row in rows(database, query)}

    before = made()
    declare(database, "coming", ["metadata.x"], ["metadata.title"])
    assert store.runner.run(indexes.settle(store.conn))
    coming = made().keys() - before.keys()
    assert sorted(name.split("_")[1] for name in coming) == ["number", "text", "words"]
    with psycopg.connect(database, autocommit=True) as conn:
        conn.execute(
            "UPDATE pg_index SET indisvalid = false WHERE indexrelid = %s::regclass",
            [f"metastore.{min(coming)}"],
        )
    assert not all(made().values())
    assert store.runner.run(indexes.settle(store.conn))
    assert all(made().values()) and coming <= made().keys()
    assert not store.runner.run(indexes.settle(store.conn))
    declare(database, "coming")
    assert store.runner.run(indexes.settle(store.conn))
    assert made() == before


def test_no_search_reads_more_than_its_matches_and_a_first_look(
    database: str, store: Store
) -> None:
    """Buffers touched, not time: where little matches, an order must not be walked to its end."""
    with psycopg.connect(database, autocommit=True) as conn:
        conn.execute("DELETE FROM metastore.records")
        conn.execute(
            "INSERT INTO metastore.records "
            "(namespace, key, metadata, tags, owner, updated_at, created_by, updated_by) "
            "SELECT 'declared', 'r' || n, jsonb_build_object('a', n, 'kind', 'k' || n %% 500, "
            "'note', repeat('x', 1000)), "
            "ARRAY['t' || n %% 2], 'o' || n %% 3, now() - n * interval '1 s', 'x', 'x' "
            "FROM generate_series(1, %s) n",
            [MANY],
        )
        conn.execute("VACUUM ANALYZE metastore.records")
    rare = {"field": "metadata.kind", "op": "eq", "value": "k7"}
    none = {"field": "metadata.kind", "op": "eq", "value": "nothing"}
    half = {"field": "tags", "op": "array_contains", "value": "t1"}
    some = {"field": "metadata.a", "op": "between", "value": [MANY // 2, MANY // 2 + 20]}
    few = {"field": "metadata.a", "op": "between", "value": [50, 60]}
    words = {"field": "text", "op": "matches", "value": "plum"}
    for tree in (rare, none, half, some, few, words, {"and": [rare, half]}, {"and": [half, some]}):
        for sort in ("key", "updatedAt", "owner", "metadata.a", "version"):
            if tree == half and sort == "version":
                continue  # half of everything has to be put in order
            query = Query((DECLARED,), filters.parse(tree), ordering.parse([(sort, True)]))
            touched = _touched(database, store, query)
            assert touched < 1200, (tree, sort, touched)


def _touched(url: str, store: Store, query: Query) -> int:
    before = _buffers(url, store)
    store.runner.run(one_page(store.conn, query))
    return _buffers(url, store) - before


def _buffers(url: str, store: Store) -> int:
    store.runner.run(store.conn.execute("SELECT pg_stat_force_next_flush()"))
    query = (
        "SELECT sum(idx_blks_read + idx_blks_hit + heap_blks_read + heap_blks_hit)::bigint "
        "FROM pg_statio_all_tables WHERE schemaname = 'metastore' AND relname = 'records'"
    )
    return int(value(url, query))


async def test_a_search_that_takes_too_long_says_what_to_do(database: str) -> None:
    query = Query(tree=filters.parse({"field": "metadata.a", "op": "contains", "value": "x"}))
    async with make_pool(database, name="test") as pool:
        with pytest.raises(TooBroad, match="declare an index"):
            async with connection_within(pool, 0.001, ADVICE) as conn:
                await search.find(conn, query, None)
