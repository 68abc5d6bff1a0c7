"""Queries over HTTP: each row once, from the table or after it, in every format."""

import csv
import io
import json
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support import log_tables
from tests.support.api import Api, own_api
from tests.support.database import value


@dataclass(frozen=True)
class Tables:
    api: Api
    root: Path
    headers: dict[str, str]

    def sql(self, text: str, **headers: str) -> httpx.Response:
        return self.post("sql", {"sql": text}, **headers)

    def post(self, path: str, body: dict[str, Any], **headers: str) -> httpx.Response:
        url = f"{self.api.url}/timestore/v1/{path}"
        return httpx.post(url, json=body, headers={**self.headers, **headers}, timeout=60)

    def rows(self, text: str) -> list[list[Any]]:
        answer = self.sql(text)
        assert answer.status_code == 200, answer.text
        return list(answer.json()["rows"])


@pytest.fixture(scope="module")
def tables(server_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tables]:
    root: Path = tmp_path_factory.mktemp("tables") / "it's 50%c ż #1"
    with own_api(server_url, "inline", TRISTORE_TIMESTORE__ROOT=str(root)) as api:
        log_tables.publish(api.database, 60)
        scopes = ("timestore:read", "timestore:write", "timestore:admin")
        yield Tables(api, root, api.bearer(*scopes))


def test_every_row_counts_once_wherever_the_table_ends(tables: Tables) -> None:
    """Before there is a table, at any point of it, and while both tables end elsewhere."""
    dice = random.Random(7)
    for _ in range(6):
        _assert_equal_to_the_log(tables)
        head = value(tables.api.database, "SELECT last FROM bus.ingress_head")
        for name in ("events", "filestore_activity"):
            through = dice.randint(log_tables.reached(tables.root, name) + 1, head)
            log_tables.commit(tables.root, tables.api.database, name, through)
        _assert_equal_to_the_log(tables)
        log_tables.publish(tables.api.database, 20)


def _assert_equal_to_the_log(tables: Tables) -> None:
    database = tables.api.database
    answer = tables.sql(
        "SELECT (SELECT [count(*), count(DISTINCT id), max(ingress_sequence)] FROM events),"
        " (SELECT [count(*), count(DISTINCT (event_id, ordinal)), sum(size_delta)]"
        " FROM filestore_activity)"
    ).json()
    events, activity = answer["rows"][0]
    (count, last), (rows, total) = (
        value(database, "SELECT ARRAY[count(*), max(ingress_sequence)] FROM bus.workflow_events"),
        value(database, "SELECT ARRAY[count(*), sum(size_delta)] FROM bus.filestore_activity_v"),
    )
    assert events == [count, count, last]
    assert [int(number) for number in activity] == [rows, rows, total]
    assert answer["throughSequence"] == last
    assert (answer["freshnessMs"], answer["tailTruncated"], answer["truncated"]) == (
        0,
        False,
        False,
    )
    versions = answer["tableVersion"]
    assert set(versions) == {"events", "filestore_activity"}


def test_columns_are_the_same_with_and_without_a_tail(tables: Tables) -> None:
    head = value(tables.api.database, "SELECT last FROM bus.ingress_head")
    whole = "SELECT * FROM filestore_activity ORDER BY sequence, ordinal"
    before = tables.sql(whole).json()
    log_tables.commit(tables.root, tables.api.database, "filestore_activity", head)
    after = tables.sql(whole).json()
    assert before["columns"] == after["columns"]
    assert before["rows"] == after["rows"] != []
    assert before["tableVersion"] != after["tableVersion"]


def test_a_table_made_anew_is_noticed(tables: Tables) -> None:
    """The worker keeps what it knew of the old one, whose version was higher."""
    head = value(tables.api.database, "SELECT last FROM bus.ingress_head")
    log_tables.commit(tables.root, tables.api.database, "events", head)
    counted = "SELECT count(*), count(DISTINCT id) FROM events"
    before = tables.rows(counted)
    (tables.root / "events").rename(tables.root / "_moved_away")
    log_tables.commit(tables.root, tables.api.database, "events", 5)
    log_tables.commit(tables.root, tables.api.database, "events", 9)
    for _ in range(3):  # whichever worker answers
        assert tables.rows(counted) == before == [[head, head]]


def test_the_same_rows_in_every_format(tables: Tables) -> None:
    text = "SELECT id, occurred_at, ingress_sequence AS n, NULL::DOUBLE AS none FROM events"
    text += " ORDER BY n LIMIT 20"
    wanted = [row[:3] for row in tables.rows(text)]

    def asked(media: str) -> bytes:
        answer = tables.sql(text, Accept=media)
        assert answer.headers["content-type"].split(";")[0] == media
        assert int(answer.headers["x-through-sequence"]) > 0
        assert answer.headers["x-truncated"] == "false"
        return answer.content

    lines = [json.loads(line) for line in asked("application/x-ndjson").splitlines()]
    assert [[row["id"], row["occurred_at"], row["n"]] for row in lines] == wanted
    cells = list(csv.reader(io.StringIO(asked("text/csv").decode())))
    assert cells[0] == ["id", "occurred_at", "n", "none"]
    assert [[row[0], row[1], int(row[2])] for row in cells[1:]] == wanted
    stream = pa.ipc.open_stream(asked("application/vnd.apache.arrow.stream")).read_all()
    parquet = pq.read_table(io.BytesIO(asked("application/vnd.apache.parquet")))
    for table in (stream, parquet):
        assert table.column_names == ["id", "occurred_at", "n", "none"]
        assert table["n"].to_pylist() == [row[2] for row in wanted]
        assert str(table.schema.field("occurred_at").type) == "timestamp[us, tz=UTC]"


@pytest.mark.parametrize(
    ("accept", "status", "media"),
    [
        ("*/*", 200, "application/json"),
        ("text/*", 200, "text/csv"),
        ("text/csv;q=0.5, application/json;q=0.1", 200, "text/csv"),
        ("application/json;q=0, */*", 200, "application/x-ndjson"),
        ("text/html", 406, "application/problem+json"),
        ("application/json;q=0", 406, "application/problem+json"),
    ],
)
def test_the_format_is_what_the_client_accepts(
    tables: Tables, accept: str, status: int, media: str
) -> None:
    answer = tables.sql("SELECT 1", Accept=accept)
    assert answer.status_code == status
    assert answer.headers["content-type"].split(";")[0] == media


def test_the_samples_of_the_docs_are_answered(tables: Tables) -> None:
    page = (Path(__file__).parents[2] / "docs" / "timestore.md").read_text("utf-8")
    blocks = re.findall(r"```sql\n(.+?)```", page, re.DOTALL)
    samples = [text for block in blocks for text in block.split(";") if text.strip()]
    assert len(samples) >= 3
    for sample in samples:
        assert tables.sql(sample).status_code == 200, sample


def test_values_json_lacks_become_strings(tables: Tables) -> None:
    assert tables.rows(
        "SELECT 'nan'::DOUBLE, 1.50::DECIMAL(4,2), 2::HUGEINT << 100, 'ab'::BLOB,"
        " TIMESTAMPTZ '2026-03-01 00:00:00.000001+00', DATE '2026-03-01', {'a': [1, NULL]},"
        " 9007199254740993, 'infinity'::TIMESTAMPTZ"
    ) == [
        [
            *("NaN", "1.50", 2 * 2**100, "YWI=", "2026-03-01T00:00:00.000001Z", "2026-03-01"),
            *({"a": [1, None]}, 9007199254740993, "infinity"),
        ]
    ]


def test_a_long_answer_is_cut_and_says_so(tables: Tables) -> None:
    cut = tables.sql("SELECT * FROM range(20000)").json()
    assert (len(cut["rows"]), cut["truncated"]) == (10_000, True)
    whole = tables.sql("SELECT * FROM range(10000)").json()
    assert (len(whole["rows"]), whole["truncated"]) == (10_000, False)
    wide = tables.sql("SELECT repeat('x', 1000000) FROM range(100)").json()
    assert (len(wide["rows"]), wide["truncated"]) == (8, True)
    bulk = tables.sql("SELECT * FROM range(20000)", Accept="application/vnd.apache.parquet")
    assert pq.read_table(io.BytesIO(bulk.content)).num_rows == 20_000
