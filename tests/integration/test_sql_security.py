"""What SQL over HTTP cannot do: reach outside of the tables, harm the API, or tell of the host."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support import log_tables
from tests.support.api import Api, own_api
from tests.support.timestore import ALL, Set

ENGINES = ("duckdb", "deltalake", "pyarrow", "libarrow", "adbc", "pyspark")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tables")


@pytest.fixture(scope="module")
def api(server_url: str, root: Path) -> Iterator[Api]:
    with own_api(server_url, "inline", TRISTORE_TIMESTORE__ROOT=str(root)) as api:
        log_tables.publish(api.database, 20)
        log_tables.commit(root, api.database, "events", 15)
        log_tables.commit(root, api.database, "filestore_activity", 15)
        yield api


@pytest.fixture(scope="module")
def http(api: Api) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=api.url, headers=api.bearer(*ALL), timeout=60) as client:
        yield client


def ask(http: httpx.Client, sql: str, **headers: str) -> httpx.Response:
    return http.post("/timestore/v1/sql", json={"sql": sql}, headers=headers)


@pytest.mark.parametrize(
    "sql",
    [
        "FROM events",
        "DESCRIBE events",
        "WITH a AS (SELECT ingress_sequence AS n FROM events)"
        " SELECT sum(n) FROM a JOIN range(3) r ON a.n = r.range",
        "SELECT list_transform([1, 2], lambda x: x + 1), unnest([1])",
        "VALUES (1), (2)",
        "SELECT * FROM EVENTS;",
        "SELECT e.id FROM events e JOIN filestore_activity a ON a.event_id = e.id",
        "SELECT sum(net_bytes) FROM filestore_growth",
    ],
)
def test_ordinary_queries_are_answered(http: httpx.Client, sql: str) -> None:
    answer = ask(http, sql)
    assert answer.status_code == 200, answer.text
    assert answer.json()["rows"]


FORBIDDEN = [
    # S40
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM read_blob('/proc/self/environ')",
    "SELECT * FROM read_parquet('/etc/passwd')",
    "SELECT * FROM parquet_metadata('/etc/passwd')",
    "SELECT * FROM glob('/etc/*')",
    "SELECT * FROM read_csv('http://169.254.169.254/latest')",
    "INSTALL httpfs",
    "LOAD httpfs",
    "PRAGMA threads=64",
    "PRAGMA enable_profiling",
    "SET enable_external_access = true",
    "SET profile_output = '/tmp/tristore-stolen'",
    "RESET memory_limit",
    "CALL enable_logging(storage = 'file')",
    # S41
    "COPY events TO '/tmp/tristore-stolen.csv'",
    "COPY (SELECT 1) TO '{root}/events/stolen.parquet'",
    "ATTACH '/tmp/tristore-stolen.db'",
    "ATTACH '{root}/stolen.db'",
    "EXPORT DATABASE '{root}/stolen'",
    "CREATE TABLE t AS SELECT 1",
    "INSERT INTO events SELECT * FROM events",
    "DROP VIEW events",
    "EXPLAIN SELECT 1",
    "PREPARE p AS SELECT 1",
    # S44
    "SELECT * FROM duckdb_settings()",
    "SELECT * FROM duckdb_secrets()",
    "SELECT current_setting('secret_directory')",
    "SELECT current_setting('allowed_paths')",
    "SELECT getenv('HOME')",
    "CALL pragma_version()",
    "SHOW TABLES",
    "SELECT * FROM query('SELECT 1')",
    "SELECT * FROM query_table('events')",
    "SELECT * FROM information_schema.tables",
    "SELECT * FROM pg_catalog.pg_class",
    "SELECT sql FROM duckdb_views, (WITH duckdb_views AS (SELECT 1) SELECT 1)",
    "SELECT json_serialize_sql('SELECT 1')",
]


@pytest.mark.parametrize("sql", FORBIDDEN)
def test_reaching_outside_of_the_tables_is_forbidden(
    http: httpx.Client, root: Path, sql: str
) -> None:
    answer = ask(http, sql.replace("{root}", str(root)))
    assert answer.status_code == 403, answer.text
    problem = answer.json()
    assert problem["title"] == "sql_forbidden"
    assert str(root) not in answer.text
    assert not list(Path("/tmp").glob("tristore-stolen*"))
    assert not list(root.rglob("*stolen*"))


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELECT 1; SELECT 2", "exactly one statement"),
        ("SELECT 1; DROP TABLE events", "exactly one statement"),
        ("--", "exactly one statement"),
        ("SELEC 1", "syntax error"),
        ("SELECT nothing FROM events", "nothing"),
        ("SELECT * FROM elsewhere", "the tables are: events"),
        ("SELECT * FROM '/etc/passwd'", "there is no table"),
        ("SELECT * FROM duckdb_views", "there is no table"),
        # Names of ours inside of the worker, and host variables.
        ("SELECT * FROM tail_events", "there is no table"),
        ("SELECT * FROM rows", "there is no table"),
        ("SELECT filename FROM events", "filename"),
        ("SELECT ?", "parameter"),
        ("SELECT 'a'::INTEGER", "Could not convert"),
        # Found out only when the first rows have been made.
        ("SELECT if(range > 9000, 'a', '1')::INTEGER FROM range(200000)", "Could not convert"),
        ("SELECT " + "(" * 2000 + "1" + ")" * 2000, ""),
    ],
)
def test_a_bad_query_is_answered_with_the_reason(
    http: httpx.Client, root: Path, sql: str, reason: str
) -> None:
    answer = ask(http, sql)
    assert answer.status_code == 400, answer.text
    assert reason in answer.json()["detail"]
    assert str(root) not in answer.text


@pytest.mark.parametrize(
    "sql",
    ["SELECT repeat('x', 1000000000)", "SELECT list(range) FROM range(400000000)"],
)
def test_memory_is_bounded(http: httpx.Client, sql: str) -> None:
    answer = ask(http, sql)
    assert answer.status_code in (400, 408), answer.text
    assert "narrow it" in answer.json()["detail"]
    assert ask(http, "SELECT count(*) FROM events").json()["rows"] == [[20]]


@pytest.mark.parametrize(
    ("limits", "seen"),
    [
        ({}, {"events", "filestore_activity"}),
        ({"mounts": ["lake"]}, set()),
        ({"namespaces": ["n"]}, set()),
        ({"datasets": ["events"]}, {"events"}),
        ({"mounts": ["lake"], "datasets": ["filestore_activity"]}, {"filestore_activity"}),
    ],
)
def test_a_limited_token_reads_the_tables_it_names(
    api: Api, http: httpx.Client, limits: dict[str, list[str]], seen: set[str]
) -> None:
    """What it may not read is as absent, in SQL, through a CTE, and as a dataset."""
    headers = api.bearer("timestore:read", **limits)
    for table in ("events", "filestore_activity"):
        sql = f"WITH a AS (SELECT * FROM {table}) SELECT count(*) > 0 FROM a"
        answer, absent = (ask(http, text, **headers) for text in (sql, sql.replace(table, "none")))
        path = f"/timestore/v1/datasets/{table}/query"
        asked = http.post(path, json={"limit": 1}, headers=headers)
        if table in seen:
            assert answer.json()["rows"] == [[True]]
            assert len(asked.json().get("rows", [])) == 1, asked.text
            continue
        assert answer.status_code == absent.status_code == 400
        assert _detail(answer).replace(table, "none") == _detail(absent)
        unknown = http.post(path.replace(table, "none"), json={"limit": 1}, headers=headers)
        assert asked.status_code == unknown.status_code == 404
        assert _detail(asked) == _detail(unknown)


def test_a_dataset_wants_its_own_scope(api: Api, http: httpx.Client) -> None:
    secret = Set.make(http, readScope="timestore:admin")
    reader = api.bearer("timestore:read")
    assert http.post(f"{secret.path}/query", json={}).status_code == 200
    assert http.post(f"{secret.path}/query", json={}, headers=reader).status_code == 404
    assert ask(http, f"SELECT * FROM {secret.slug}").status_code == 200
    refused = ask(http, f"SELECT * FROM {secret.slug}", **reader)
    assert refused.status_code == 400
    assert secret.slug not in _detail(ask(http, "SELECT * FROM none", **reader))


def test_a_deleted_dataset_is_no_longer_read(http: httpx.Client) -> None:
    gone = Set.make(http)
    gone.rows({"at": "2026-11-15T00:00:00Z", "station": "s", "celsius": 1})
    assert ask(http, f"SELECT count(*) FROM {gone.slug}").json()["rows"] == [[1]]
    assert http.delete(gone.path).is_success
    assert http.post(f"{gone.path}/query", json={}).status_code == 404
    assert ask(http, f"SELECT count(*) FROM {gone.slug}").status_code == 400
    body = {"slug": gone.slug, "timeColumn": "at", "schema": [{"name": "at", "type": "timestamp"}]}
    assert http.post("/timestore/v1/datasets", json=body).status_code == 201
    assert ask(http, f"SELECT * FROM {gone.slug}").json()["rows"] == []


def test_the_api_process_loads_no_engine(api: Api, http: httpx.Client) -> None:
    """After a query and an ingest; what a process has loaded of native code is in its map."""
    made = Set.make(http)
    assert made.rows({"at": "2026-11-15T00:00:00Z", "station": "s", "celsius": 1}).is_success
    assert ask(http, f"SELECT * FROM {made.slug}").json()["rows"]
    mapped = Path(f"/proc/{api.pid}/maps").read_text()
    assert "python" in mapped
    assert [name for name in ENGINES if name in mapped] == []


def _detail(answer: Any) -> str:
    return str(answer.json()["detail"])
