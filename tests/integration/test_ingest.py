"""Ingest over HTTP: what is taken in, what is refused with its row, and what comes only once."""

import io
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.api import Api, own_api
from tests.support.database import rows, value
from tests.support.timestore import ALL, BASE, Set, faults

NOON = "2026-11-15T12:00:00Z"
NDJSON, CSV = "application/x-ndjson", "text/csv"
PARQUET, ARROW = "application/vnd.apache.parquet", "application/vnd.apache.arrow.stream"
GOOD = {"at": NOON, "station": "a", "celsius": 1.5}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def api(server_url: str, folder: Path) -> Iterator[Api]:
    limits = {"MAX_INGEST_BYTES": "3000000", "MAX_INGEST_JSON_BYTES": "100000"}
    limits["INGEST_MEMORY_MB"] = "1536"
    given = {f"TRISTORE_TIMESTORE__{name}": text for name, text in limits.items()}
    with own_api(server_url, "inline", TRISTORE_DATA_DIR=str(folder), **given) as api:
        yield api


@pytest.fixture(scope="module")
def http(api: Api) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=api.url, headers=api.bearer(*ALL), timeout=60) as client:
        yield client


@pytest.fixture
def staged(api: Api, folder: Path) -> Callable[[httpx.Response], list[dict[str, Any]]]:
    """What an ingest left for the pipeline, as rows."""

    def read(answer: httpx.Response) -> list[dict[str, Any]]:
        assert answer.status_code == 202, answer.text
        query = "SELECT file FROM timestore.ingest_batches WHERE id = %s"
        file = value(api.database, query, answer.json()["ingestId"])
        found: list[dict[str, Any]] = pq.read_table(folder / "tables" / file).to_pylist()
        assert len(found) == answer.json()["rows"]
        return found

    return read


def in_arrow(table: pa.Table) -> bytes:
    out = io.BytesIO()
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    return out.getvalue()


def in_parquet(table: pa.Table) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out)
    return out.getvalue()


def as_table(*celsius: float | None) -> pa.Table:
    count = len(celsius)
    at = pa.array([datetime(2026, 11, 15, 12, tzinfo=UTC)] * count, pa.timestamp("ms", "UTC"))
    return pa.table({"at": at, "station": ["a"] * count, "celsius": list(celsius)})


Staged = Callable[[httpx.Response], list[dict[str, Any]]]
NOON_UTC = datetime(2026, 11, 15, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("body", "media"),
    [
        (json.dumps([GOOD]).encode(), "application/json"),
        (json.dumps({"rows": [GOOD]}).encode(), "application/json; charset=utf-8"),
        (json.dumps(GOOD).encode() + b"\n\n", NDJSON),
        (f"station,celsius,at\na,1.5,{NOON}\n".encode(), CSV),
        (f'\ufeff"at","station","celsius"\r\n"{NOON}","a",1.5'.encode(), CSV),
        (in_parquet(as_table(1.5)), PARQUET),
        (in_arrow(as_table(1.5)), ARROW),
        (in_arrow(as_table(1.5).set_column(2, "celsius", pa.array([1.5], pa.float32()))), ARROW),
    ],
)
def test_every_format_brings_the_same_row(
    http: httpx.Client, staged: Staged, body: bytes, media: str
) -> None:
    one = Set.make(http)
    answer = one.send(body, media)
    assert staged(answer) == [{"at": NOON_UTC, "station": "a", "celsius": 1.5}]
    told = answer.json()
    assert told["status"] == "staged" and told["from"] == told["to"] == NOON
    assert answer.headers["location"] == f"{BASE}/ingests/{told['ingestId']}"
    assert http.get(answer.headers["location"]).json() == told


def test_times_are_kept_in_utc_and_values_unchanged(http: httpx.Client, staged: Staged) -> None:
    schema = [{"name": "at", "type": "timestamp"}, {"name": "n", "type": "long"}]
    schema += [{"name": "d", "type": "date"}, {"name": "b", "type": "boolean"}]
    one = Set.make(http, schema=schema)
    given = [
        {"at": "2026-11-15T14:00:00+02:00", "n": 2**63 - 1, "d": "2026-11-15", "b": True},
        {"at": "2026-11-15 12:00:00.000001", "n": 3.0, "b": False},
        {"at": "2026-11-15", "n": -5, "d": None},
    ]
    found = staged(one.rows(*given))
    assert [row["at"].isoformat() for row in found] == [
        "2026-11-15T12:00:00+00:00",
        "2026-11-15T12:00:00.000001+00:00",
        "2026-11-15T00:00:00+00:00",
    ]
    assert [row["n"] for row in found] == [2**63 - 1, 3, -5]
    assert [str(row["d"]) for row in found] == ["2026-11-15", "None", "None"]
    assert [row["b"] for row in found] == [True, False, None]


def test_an_empty_field_of_csv_is_null_and_a_quoted_one_is_text(
    http: httpx.Client, staged: Staged
) -> None:
    body = f'at,station,celsius\n{NOON},"",\n{NOON},"x\ny",2'.encode()
    found = staged(Set.make(http).send(body, CSV))
    assert [(row["station"], row["celsius"]) for row in found] == [("", None), ("x\ny", 2.0)]


@pytest.mark.parametrize(
    ("bad", "path"),
    [
        ({**GOOD, "celsius": "1.5"}, "/rows/1/celsius"),
        ({**GOOD, "celsius": True}, "/rows/1/celsius"),
        ({**GOOD, "celsius": [1]}, "/rows/1/celsius"),
        ({**GOOD, "celsius": 2**60 + 1}, "/rows/1/celsius"),
        ({**GOOD, "celsius": 2**64}, "/rows/1/celsius"),
        ({**GOOD, "celsius": -(2**63) - 1}, "/rows/1/celsius"),
        ({**GOOD, "station": "a\x00b"}, "/rows/1/station"),
        ({**GOOD, "station": 7}, "/rows/1/station"),
        ({**GOOD, "station": None}, "/rows/1/station"),
        ({**GOOD, "at": None}, "/rows/1/at"),
        ({"station": "a"}, "/rows/1/at"),
        ({**GOOD, "at": "yesterday"}, "/rows/1/at"),
        ({**GOOD, "at": 1763200000}, "/rows/1/at"),
        ({**GOOD, "at": "2026-02-30T00:00:00Z"}, "/rows/1/at"),
        ({**GOOD, "at": "0001-01-01T00:00:00Z"}, "/rows/1/at"),
        ({**GOOD, "new": {"a": 1}}, "/rows/1/new"),
        ({**GOOD, "_hidden": 1}, "/rows/0/_hidden"),
        ({**GOOD, "a/b": 1}, "/rows/0/a~1b"),
        (7, "/rows/1"),
    ],
)
def test_a_row_that_does_not_fit_is_named_and_nothing_is_taken(
    http: httpx.Client, api: Api, bad: Any, path: str
) -> None:
    one = Set.make(http)
    count = "SELECT last FROM timestore.ingest_head"
    before = value(api.database, count)
    assert faults(one.rows(GOOD, bad, GOOD)) == [path]
    assert value(api.database, count) == before


def test_all_bad_rows_are_named_up_to_a_hundred(http: httpx.Client) -> None:
    one = Set.make(http)
    given = [GOOD | {"celsius": "x" if n % 3 == 1 else n} for n in range(1000)]
    named = faults(one.rows(*given))
    assert named == [f"/rows/{n}/celsius" for n in range(1, 300, 3)]
    given = [GOOD | {"at": "x"}, GOOD | {"at": None}, {"station": "a"}, GOOD]
    assert faults(one.rows(*given)) == ["/rows/0/at", "/rows/1/at", "/rows/2/at"]
    body = "at,station,celsius\n" + f"{NOON},a,1\n" * 500 + f"{NOON},a,warm\n"
    answer = one.send(body.encode(), CSV)
    assert faults(answer) == ["/rows/500/celsius"]
    assert "'warm' does not fit double" in answer.json()["errors"][0]["message"]


@pytest.mark.parametrize(
    ("body", "media", "path"),
    [
        (b"", "application/json", "/"),
        (b"[]", "application/json", "/rows"),
        (b"\n\n", NDJSON, "/rows"),
        (b'{"row":[]}', "application/json", "/"),
        (b'[{"at":NaN}]', "application/json", "/rows/0/at"),
        (b'[{"at":1,"at":2}]', "application/json", "/"),
        (b'{"at":1}\n{"at":', NDJSON, "/rows/1"),
        (b'{"at":1},{"at":2}\n', NDJSON, "/rows/0"),
        (b"[" * 5000, "application/json", "/"),
        (b"", CSV, "/"),
        (b"at,station,at\n1,2,3", CSV, "/"),
        (b"at,station\n1,2,3", CSV, "/"),
        (b"at\xff,station\n1,2", CSV, "/"),
        (b"at,station\n2026-11-15,\xff\xfe", CSV, "/"),
        (b"PAR1 and no more", PARQUET, "/"),
        (in_parquet(as_table(1.5))[:-20], PARQUET, "/"),
        (b"no arrow", ARROW, "/"),
        (in_arrow(as_table(1.5))[:-200], ARROW, "/"),
        (in_arrow(pa.table({"at": [[1]]})), ARROW, "/columns/at"),
    ],
)
def test_a_body_that_cannot_be_read_is_refused(
    http: httpx.Client, body: bytes, media: str, path: str
) -> None:
    answer = Set.make(http).send(body, media)
    assert faults(answer) == [path]
    assert "/tmp" not in answer.text and "Traceback" not in answer.text


def test_texts_of_strangers_are_checked_to_the_byte(http: httpx.Client) -> None:
    """Readers of Parquet believe that a text is UTF-8, and fail where it is not."""
    texts = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"\xff\xfe")]
    )
    table = as_table(1.5).set_column(1, "station", texts)
    one = Set.make(http)
    assert faults(one.send(in_arrow(table), ARROW)) == ["/"]
    assert faults(one.send(in_parquet(table), PARQUET)) == ["/"]


def test_new_columns_are_taken_in_with_their_types(http: httpx.Client, staged: Staged) -> None:
    one = Set.make(http)
    found = staged(one.rows(GOOD | {"n": 1, "none": None}, GOOD | {"n": 2.5, "s": "x", "b": True}))
    assert [row["n"] for row in found] == [1.0, 2.5]
    types = {"n": "double", "s": "string", "b": "boolean"}
    assert types.items() <= one.columns().items() and "none" not in one.columns()
    assert one.get()["version"] == 2
    names = "at,station,whole,when,word,day,point"
    body = f"{names}\n{NOON},a,,,,,\n{NOON},a,7,{NOON},x1,2026-11-15,3.0\n"
    staged(one.send(body.encode(), CSV))
    types = {"whole": "long", "when": "timestamp", "word": "string"}
    assert (types | {"day": "date", "point": "double"}).items() <= one.columns().items()
    (later,) = staged(one.send(f"at,station,whole\n{NOON},a,-8.0\n".encode(), CSV))
    assert later["whole"] == -8
    table = as_table(1.5).append_column("small", pa.array([3], pa.int16()))
    staged(one.send(in_arrow(table), ARROW))
    assert one.columns()["small"] == "long"
    assert staged(one.rows(GOOD))[0]["small"] is None

    assert faults(one.rows(GOOD | {"other": 1}, evolve="false")) == ["/rows/0/other"]
    assert faults(one.rows(GOOD | {"mixed": 1}, GOOD | {"mixed": "x"})) == ["/rows/1/mixed"]
    clash = one.rows(GOOD | {"Celsius": 1})
    assert clash.status_code == 409 and "Celsius" in clash.json()["detail"]


def test_columns_that_two_bring_at_once_are_one(http: httpx.Client) -> None:
    one = Set.make(http)
    with ThreadPoolExecutor(4) as pool:
        sent = pool.map(lambda n: one.rows(GOOD | {"fresh": n}).status_code, range(4))
        assert list(sent) == [202] * 4
    assert [c["name"] for c in one.get()["schema"]].count("fresh") == 1


def test_a_key_brings_rows_once(http: httpx.Client, api: Api) -> None:
    one, key = Set.make(http), {"Idempotency-Key": "once"}
    body = json.dumps(GOOD).encode()
    first = one.send(body, NDJSON, key)
    again = one.send(body, NDJSON, key)
    assert again.status_code == 202 and again.json() == first.json()
    assert again.headers["idempotency-replayed"] == "true"
    other = one.send(body + b"\n" + body, NDJSON, key)
    assert other.status_code == 409 and "Idempotency-Key" in other.json()["detail"]
    elsewhere = Set.make(http).send(body, NDJSON, key)
    assert elsewhere.json()["ingestId"] != first.json()["ingestId"]
    assert one.send(body, NDJSON, {"Idempotency-Key": "x" * 201}).status_code == 400

    with ThreadPoolExecutor(8) as pool:
        race = {"Idempotency-Key": "race"}
        ids = {
            a.json()["ingestId"] for a in pool.map(lambda _: one.send(body, NDJSON, race), range(8))
        }
    assert len(ids) == 1
    query = "SELECT count(*) AS n FROM timestore.ingest_batches WHERE dataset = %s"
    assert rows(api.database, query, one.slug) == [{"n": 2}]


def test_batches_are_numbered_without_gaps(http: httpx.Client, api: Api) -> None:
    one = Set.make(http)
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda n: one.rows(GOOD if n % 3 else {"at": "x"}), range(24)))
    taken = [a.json()["ingestId"] for a in answers if a.status_code == 202]
    assert len(taken) == 16
    found = rows(api.database, "SELECT id FROM timestore.ingest_batches ORDER BY id")
    assert [row["id"] for row in found] == list(range(1, len(found) + 1))


def test_what_is_too_large_or_of_no_known_format_is_refused(
    http: httpx.Client, folder: Path
) -> None:
    one = Set.make(http)
    line = json.dumps(GOOD).encode() + b"\n"
    assert one.send(line * 60_000, NDJSON).status_code == 413
    assert one.send(b"[" + b" " * 100_000 + b"]", "application/json").status_code == 413
    assert one.send(line * 30_000, NDJSON).json()["rows"] == 30_000
    for media in ("text/plain", "", "application/xml"):
        answer = one.send(line, media)
        assert answer.status_code == 415 and "application/x-ndjson" in answer.json()["detail"]
    assert one.send(line, NDJSON, {"Content-Encoding": "gzip"}).status_code == 415
    assert one.send(line, NDJSON, wait="for me").status_code == 422
    assert one.send(line, NDJSON, timeoutSeconds="nan").status_code == 422
    left = [path.name for path in (folder / "tables").rglob(".*")]
    assert left == [], "drafts that were given up are gone"


def test_waiting_ends_with_the_time_that_was_given(http: httpx.Client) -> None:
    answer = Set.make(http).rows(GOOD, wait="committed", timeoutSeconds=0.2)
    assert answer.status_code == 202 and answer.json()["status"] == "staged"
    assert http.get(f"{BASE}/ingests/999999").status_code == 404
    assert http.get(f"{BASE}/ingests/0").status_code == 422


def test_a_body_that_brings_its_reader_down_harms_nobody_else(http: httpx.Client, api: Api) -> None:
    """A few kilobytes that say of themselves they are gigabytes."""
    bomb = pa.table({"station": pa.array(["x" * 10_000_000]).dictionary_encode()})
    many = pa.DictionaryArray.from_arrays(
        pa.array([0] * 2000, pa.int32()), bomb["station"].chunk(0).dictionary
    )
    out = io.BytesIO()
    table = pa.table({"at": pa.array([0] * 2000, pa.timestamp("us", "UTC")), "station": many})
    with pa.ipc.new_stream(
        out, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")
    ) as writer:
        writer.write_table(table)
    one = Set.make(http)
    answer = one.send(out.getvalue(), ARROW)
    assert answer.status_code in (400, 413, 422), answer.text
    assert one.rows(GOOD).status_code == 202


def test_the_api_loads_nothing_that_reads_tables(http: httpx.Client, api: Api) -> None:
    assert Set.make(http).rows(GOOD).status_code == 202
    loaded = [Path(m.path).name for m in psutil.Process(api.pid).memory_maps()]
    heavy = ("libarrow", "libparquet", "_internal.abi3", "duckdb")
    assert not [name for name in loaded if name.startswith(heavy)]
