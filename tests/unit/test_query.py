"""Queries over tables: the answer's shape, and what a query cannot do."""

import asyncio
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from tristore.errors import Forbidden, InvalidRequest, Unavailable
from tristore.timestore.query import Limits, run_sql


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table `events` of three rows on two days, beside files of a version taken back."""
    root = tmp_path_factory.mktemp("tables") / "it's 50%c ż #1"
    rows = pa.table(
        {"id": ["a", "b", "c"], "n": [1, 2, 3], "day": ["2026-03-01"] * 2 + ["2026-03-02"]}
    )
    reached = CommitProperties(app_transactions=[Transaction("events:through", 3)])
    write_deltalake(root / "events", rows, partition_by=["day"], commit_properties=reached)
    write_deltalake(root / "events", rows, partition_by=["day"], mode="append")
    table = DeltaTable(root / "events")
    table.restore(0)
    return str(root)


async def test_the_answer_tells_what_it_rests_on(root: str) -> None:
    answer = await run_sql(root, "SELECT id, n, day FROM events ORDER BY id")
    freshness = answer.pop("freshnessMs")
    assert answer == {
        "columns": [
            {"name": "id", "type": "VARCHAR"},
            {"name": "n", "type": "BIGINT"},
            {"name": "day", "type": "VARCHAR"},
        ],
        "rows": [["a", 1, "2026-03-01"], ["b", 2, "2026-03-01"], ["c", 3, "2026-03-02"]],
        "tableVersion": {"events": 2},
        "throughSequence": 3,
        "tailTruncated": False,
        "truncated": False,
    }
    assert freshness >= 0


@pytest.mark.parametrize(
    "sql",
    [
        "FROM events",
        "DESCRIBE events",
        "WITH a AS (SELECT n FROM events) SELECT sum(n) FROM a JOIN range(3) r ON a.n = r.range",
        "SELECT list_transform([1, 2], lambda x: x + 1), unnest([1])",
        "VALUES (1), (2)",
        "SELECT * FROM EVENTS;",
    ],
)
async def test_ordinary_queries_are_answered(root: str, sql: str) -> None:
    assert (await run_sql(root, sql))["rows"]


async def test_values_json_lacks_become_strings(root: str) -> None:
    sql = (
        "SELECT 'nan'::DOUBLE, 1.50::DECIMAL(4,2), 2::HUGEINT ** 100 > 0, 'ab'::BLOB, "
        "TIMESTAMPTZ '2026-03-01 00:00:00.000001+00', DATE '2026-03-01', {'a': [1, NULL]}, "
        "9007199254740993"
    )
    assert (await run_sql(root, sql))["rows"] == [
        [
            *("NaN", "1.50", True, "YWI=", "2026-03-01T00:00:00.000001Z", "2026-03-01"),
            *({"a": [1, None]}, 9007199254740993),
        ]
    ]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM read_parquet('/etc/passwd')",
        "SELECT * FROM glob('/etc/*')",
        "COPY events TO '/tmp/tristore-stolen.csv'",
        "ATTACH '/tmp/tristore-stolen.db'",
        "EXPORT DATABASE '/tmp/tristore-stolen'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "PRAGMA threads=64",
        "SET enable_external_access = true",
        "RESET memory_limit",
        "CREATE TABLE t AS SELECT 1",
        "DROP VIEW events",
        "EXPLAIN SELECT 1",
        "CALL pragma_version()",
        "SHOW TABLES",
        "SELECT * FROM duckdb_settings()",
        "SELECT current_setting('allowed_paths')",
        "SELECT getenv('HOME')",
        "SELECT * FROM query('SELECT 1')",
        "SELECT * FROM information_schema.tables",
        "SELECT sql FROM duckdb_views, (WITH duckdb_views AS (SELECT 1) SELECT 1)",
        "SELECT json_serialize_sql('SELECT 1')",
    ],
)
async def test_reaching_outside_of_the_tables_is_forbidden(root: str, sql: str) -> None:
    with pytest.raises(Forbidden):
        await run_sql(root, sql)


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELECT 1; SELECT 2", "exactly one statement"),
        ("SELECT 1; DROP TABLE events", "exactly one statement"),
        ("", "exactly one statement"),
        ("SELEC 1", "syntax error"),
        ("SELECT nothing FROM events", '"nothing" not found'),
        ("SELECT * FROM elsewhere", "the tables are: events"),
        ("SELECT * FROM '/etc/passwd'", "there is no table"),
        ("SELECT * FROM duckdb_views", "there is no table"),
        ("SELECT filename FROM events", "not found"),
    ],
)
async def test_a_bad_query_is_answered_with_the_reason(root: str, sql: str, reason: str) -> None:
    with pytest.raises(InvalidRequest, match=reason) as refusal:
        await run_sql(root, sql)
    assert root not in str(refusal.value)


async def test_an_endless_query_is_cut_and_the_caller_goes_on(root: str) -> None:
    endless = "SELECT sum(a.range * b.range) FROM range(10000000) a, range(100000000) b"
    cut = asyncio.create_task(run_sql(root, endless, Limits(seconds=2)))
    assert (await run_sql(root, "SELECT count(*) FROM events"))["rows"] == [[3]]
    with pytest.raises(Unavailable, match="longer than 2 s"):
        await cut


async def test_memory_is_bounded(root: str) -> None:
    greedy = "SELECT list(range) FROM range(400000000)"
    with pytest.raises((InvalidRequest, Unavailable), match="narrow it"):
        await run_sql(root, greedy, Limits(memory_mb=100))


async def test_long_answers_are_cut_by_rows_and_by_bytes(root: str) -> None:
    many = await run_sql(root, "SELECT * FROM range(1000)", Limits(rows=10))
    assert (len(many["rows"]), many["truncated"]) == (10, True)
    wide = await run_sql(
        root, "SELECT repeat('x', 1000) FROM range(100)", Limits(answer_bytes=5000)
    )
    assert (len(wide["rows"]), wide["truncated"]) == (4, True)
    exact = await run_sql(root, "SELECT * FROM range(10)", Limits(rows=10))
    assert (len(exact["rows"]), exact["truncated"]) == (10, False)


async def test_a_file_that_is_not_there_is_told_without_its_path(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "events", pa.table({"n": [1], "day": ["x"]}), partition_by=["day"])
    for file in tmp_path.rglob("*.parquet"):
        file.unlink()
    with pytest.raises(Unavailable) as refusal:
        await run_sql(str(tmp_path), "SELECT * FROM events")
    assert str(tmp_path) not in str(refusal.value)


async def test_no_tables_yet(tmp_path: Path) -> None:
    assert (await run_sql(str(tmp_path / "none"), "SELECT 1"))["tableVersion"] == {}
    with pytest.raises(InvalidRequest, match="the tables are: none yet"):
        await run_sql(str(tmp_path / "none"), "SELECT * FROM events")


async def test_the_calling_process_loads_no_engine() -> None:
    engines = "{'duckdb', 'deltalake', 'pyarrow'}"
    check = f"import tristore.timestore.api, sys; print({engines} & sys.modules.keys())"
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", check), stdout=asyncio.subprocess.PIPE
    )
    output, _ = await child.communicate()
    assert output.decode().strip() == "set()"
