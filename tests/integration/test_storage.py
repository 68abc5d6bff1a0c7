"""Growth and churn over HTTP and on the command line: each change once, in table or tail."""

import csv
import io
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import httpx
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from tests.support.activity import settle, tell
from tests.support.api import Api, own_api
from tests.support.files import SCOPES, Files
from tests.support.parts import environment
from tristore.cli import app

STORAGE = "/timestore/v1/storage"
TEN = datetime(2026, 3, 1, 10, tzinfo=UTC)
DAY = {"from": "2026-03-01T09:00:00Z", "to": "2026-03-01T13:00:00Z"}
LAKE = {"mount": "lake", **DAY}
Told = tuple[int, str, dict[str, Any]]

# Minutes after ten, what happened, and to what.
STORY: list[Told] = [
    (-600, "node.created", {"mount": "lake", "path": "old", "sizeBytes": 7, "sizeDelta": 7}),
    (5, "node.created", {"mount": "lake", "path": "in/a/b/f", "sizeBytes": 100, "sizeDelta": 100}),
    (6, "node.created", {"mount": "lake", "path": "in/g", "sizeBytes": 50, "sizeDelta": 50}),
    (6, "node.created", {"mount": "pond", "path": "in/p", "sizeBytes": 1000, "sizeDelta": 1000}),
    (70, "node.updated", {"mount": "lake", "path": "in/g", "sizeBytes": 20, "sizeDelta": -30}),
    (
        130,
        "node.moved",
        {"mount": "lake", "path": "out/f", "sizeBytes": 100, "sizeDelta": 0}
        | {"previousPath": "in/a/b/f"},
    ),
    (135, "node.deleted", {"mount": "lake", "path": "in/g", "sizeBytes": 20, "sizeDelta": -20}),
    (
        140,
        "nodes.imported",
        {"mount": "lake", "sizeDelta": 30}
        | {
            "nodes": [
                {"nodeId": str(n), "path": f"new/{n}", "kind": "file", "version": 1}
                | {"sizeBytes": n * 10}
                for n in (1, 2)
            ]
        },
    ),
]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tables")


@pytest.fixture(scope="module")
def api(server_url: str, root: Path) -> Iterator[Api]:
    with own_api(server_url, "inline", TRISTORE_TIMESTORE__ROOT=str(root)) as api:
        for minutes, type, payload in STORY:
            tell(api.database, TEN + timedelta(minutes=minutes), type, **payload)
        yield api


@pytest.fixture(scope="module")
def client(api: Api) -> Iterator[httpx.Client]:
    headers = api.bearer("timestore:read", *SCOPES)
    with httpx.Client(base_url=api.url, headers=headers, timeout=60) as client:
        yield client


def asked(client: httpx.Client, what: str, **params: Any) -> dict[str, Any]:
    answer = client.get(f"{STORAGE}/{what}", params=params)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def growth(client: httpx.Client, **params: Any) -> list[tuple[int, ...]]:
    """In, out, total."""
    points = asked(client, "growth", **params)["points"]
    return [(p["bytesIn"], p["bytesOut"], p["totalBytes"]) for p in points]


def churn(client: httpx.Client, **params: Any) -> list[tuple[Any, ...]]:
    items = asked(client, "churn", **params)["items"]
    return [(i["prefix"], i["changes"], i["bytesIn"], i["bytesOut"]) for i in items]


def everything(client: httpx.Client) -> list[Any]:
    """Every way to an answer: hourly sums, single changes, and both."""
    exact = {"from": "2026-03-01T09:30:00Z", "to": "2026-03-01T12:18:00Z"}
    return [
        growth(client, **LAKE, bucket="1h"),
        growth(client, **LAKE, bucket="30m"),
        growth(client, **LAKE, bucket="1h", prefix="in"),
        growth(client, **LAKE, bucket="1h", prefix="in/a/b"),
        growth(client, **DAY, bucket="4h"),
        churn(client, **LAKE),
        churn(client, mount="lake", **exact),
        churn(client, **LAKE, depth=3),
    ]


WANTED = [
    [(0, 0, 7), (150, 0, 157), (0, 30, 127), (30, 20, 137)],
    [
        *((0, 0, 7), (0, 0, 7), (150, 0, 157), (0, 0, 157)),
        *((0, 30, 127), (0, 0, 127), (30, 20, 137), (0, 0, 137)),
    ],
    [(0, 0, 0), (150, 0, 150), (0, 30, 120), (0, 120, 0)],
    [(0, 0, 0), (100, 0, 100), (0, 0, 100), (0, 100, 0)],
    [(1150, 30, 1127), (30, 20, 1137)],
    [("in", 5, 150, 150), ("new", 2, 30, 0), ("out", 1, 100, 0)],
    [("in", 5, 150, 150), ("out", 1, 100, 0)],
    [("in/a/b", 2, 100, 100)],
]


def test_each_change_is_counted_once_wherever_the_tables_end(
    api: Api, client: httpx.Client, root: Path
) -> None:
    found = asked(client, "growth", **LAKE, bucket="1h")
    assert found["throughSequence"] == len(STORY)
    assert (found["tailTruncated"], found["freshnessMs"]) == (False, 0)
    assert everything(client) == WANTED
    after = 0
    for through in (3, 6, len(STORY)):
        settle(root, api.database, after, through)
        assert everything(client) == WANTED, through
        after = through


def test_a_point_tells_all_the_contract_names(client: httpx.Client) -> None:
    answer = asked(client, "growth", **LAKE, bucket="1h", prefix="in/")
    assert answer["points"][1] == {
        "bucket": "2026-03-01T10:00:00Z",
        "mount": "lake",
        "prefix": "in",
        "bytesIn": 150,
        "bytesOut": 0,
        "netBytes": 150,
        "created": 2,
        "updated": 0,
        "deleted": 0,
        "moved": 0,
        "totalBytes": 150,
    }
    item = asked(client, "churn", **LAKE, limit=1)["items"]
    assert item == [
        {"mount": "lake", "prefix": "in", "changes": 5, "bytesIn": 150, "bytesOut": 150}
        | {"netBytes": 0}
    ]


def test_churn_goes_by_changes_or_by_bytes_and_below_a_folder(client: httpx.Client) -> None:
    assert [row[0] for row in churn(client, **DAY, by="bytes")] == ["in", "in", "out", "new"]
    assert churn(client, **LAKE, prefix="in", by="bytes") == [("in/a", 2, 100, 100)]
    assert churn(client, mount="lake", **{"from": "2026-03-02T00:00:00Z"}) == []


def test_what_is_not_said_is_the_last_seven_days_by_hour(client: httpx.Client) -> None:
    points = asked(client, "growth")["points"]
    first, last = (datetime.fromisoformat(points[n]["bucket"]) for n in (0, -1))
    assert last - first == timedelta(days=7)
    assert points[0]["mount"] is None
    # All of the story lies before, and what it left is there to begin with.
    assert set(growth(client, mount="lake")) == {(0, 0, 137)}


@pytest.mark.parametrize("what", ["growth", "churn"])
def test_the_same_rows_come_as_csv_arrow_and_chart(client: httpx.Client, what: str) -> None:
    told = asked(client, what, **LAKE)["points" if what == "growth" else "items"]
    text = client.get(f"{STORAGE}/{what}", params=LAKE, headers={"Accept": "text/csv"})
    assert text.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(text.text)))
    assert [int(row["bytesIn"]) for row in rows] == [row["bytesIn"] for row in told]
    arrow = client.get(f"{STORAGE}/{what}", params={**LAKE, "format": "arrow"})
    table = pa.ipc.open_stream(arrow.content).read_all()
    assert table.column("netBytes").to_pylist() == [row["netBytes"] for row in told]
    chart = client.get(f"{STORAGE}/{what}", params=LAKE, headers={"Accept": "image/svg+xml"})
    assert chart.headers["content-type"].startswith("image/svg+xml")
    assert "default-src 'none'" in chart.headers["content-security-policy"]
    assert ElementTree.fromstring(chart.text).get("role") == "img"
    assert "lake" in chart.text
    refused = client.get(f"{STORAGE}/{what}", params=LAKE, headers={"Accept": "image/png"})
    assert refused.status_code == 406


@pytest.mark.parametrize(
    ("params", "word"),
    [
        ({"from": "2020-01-01T00:00:00Z", "to": "2026-01-01T00:00:00Z", "bucket": "1h"}, "wider"),
        ({"from": "2026-01-02T00:00:00Z", "to": "2026-01-01T00:00:00Z"}, "before"),
        ({"bucket": "1y"}, "bucket"),
        ({"bucket": "9999w"}, "52w"),
        ({"buckets": "1h"}, "buckets"),
        ({"from": "yesterday"}, "from"),
        ({"mount": "A/B"}, "mount"),
        ({"prefix": "a\x00b"}, "NUL"),
        ({"format": "png"}, "format"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_the_next_step(
    client: httpx.Client, params: dict[str, str], word: str
) -> None:
    refused = client.get(f"{STORAGE}/growth", params=params)
    assert refused.status_code == 422
    assert word in refused.text


def test_odd_names_are_names(api: Api, client: httpx.Client) -> None:
    name = "100%'\"; --/<b>\u202e$1\\ {x}"
    tell(api.database, TEN, "node.created", mount="odd", path=f"{name}/f", sizeBytes=1, sizeDelta=1)
    params = {"mount": "odd", **DAY}
    assert churn(client, **params, depth=2) == [(name, 1, 1, 0)]
    assert growth(client, **params, prefix=name, bucket="1d") == [(1, 0, 1)]
    chart = client.get(f"{STORAGE}/churn", params={**params, "depth": 2, "format": "svg"})
    assert "&lt;b&gt;" in chart.text
    ElementTree.fromstring(chart.text)


def test_a_mount_that_is_not_there_or_not_allowed_is_absent(
    api: Api, client: httpx.Client, tmp_path: Path
) -> None:
    unused = Files.make(api, client, tmp_path)
    assert growth(client, mount=unused.mount, bucket="1w", **DAY) == [(0, 0, 0)]
    limited = api.bearer("timestore:read", mounts=["pond"])
    for headers, mount in ((client.headers, "none-such"), (limited, "lake"), (limited, "none")):
        for what in ("growth", "churn"):
            answer = httpx.get(
                f"{api.url}{STORAGE}/{what}", params={"mount": mount}, headers=headers, timeout=60
            )
            assert answer.status_code == 404, answer.text
    with httpx.Client(base_url=api.url, headers=limited, timeout=60) as pond:
        assert growth(pond, **DAY, bucket="1d") == [(1000, 0, 1000)]
        assert churn(pond, **DAY) == [("in", 1, 1000, 0)]


@pytest.mark.parametrize(
    ("limits", "status"),
    [
        ({"datasets": ["weather"]}, 404),
        ({"datasets": ["filestore_growth"]}, 200),
        ({"mounts": []}, 200),
    ],
)
def test_a_token_limited_to_datasets_must_name_the_growth_table(
    api: Api, limits: dict[str, list[str]], status: int
) -> None:
    headers = api.bearer("timestore:read", **limits)
    answer = httpx.get(f"{api.url}{STORAGE}/growth", params=DAY, headers=headers, timeout=60)
    assert answer.status_code == status, answer.text
    if limits == {"mounts": []}:
        assert {point["totalBytes"] for point in answer.json()["points"]} == {0}


@pytest.fixture
def ts(api: Api, client: httpx.Client) -> Callable[..., str]:
    token = client.headers["authorization"].removeprefix("Bearer ")
    where = {"TRISTORE_URL": api.url, "TRISTORE_TOKEN": token}

    def run(*argv: str, width: int = 100) -> str:
        given = environment(api.settings, COLUMNS=str(width), **where)
        done = CliRunner().invoke(app, ["ts", *argv], env=given)
        assert done.exit_code == 0, (argv, done.output, done.exception)
        return done.stdout

    return run


def test_the_command_line_draws_prints_and_saves(ts: Callable[..., str], tmp_path: Path) -> None:
    times = ("--from", DAY["from"], "--to", DAY["to"])
    shown = ts("growth", "lake", *times, "--bucket", "1h")
    assert "lake: 137 B in the end, 180 B came in, 50 B went out" in shown
    assert "200 B │" in shown and "03-01 09:00" in shown
    assert all(len(line) <= 30 for line in ts("growth", *times, width=30).splitlines()[1:])
    assert json.loads(ts("growth", "lake", *times, "--json"))["points"][0]["mount"] == "lake"
    assert ts("growth", "lake", *times, "--csv").startswith("bucket,mount,prefix,bytesIn")
    file = tmp_path / "chart.svg"
    assert "wrote" in ts("churn", "lake", *times, "--svg", str(file))
    ElementTree.fromstring(file.read_text("utf-8"))
    listed = ts("churn", "lake", *times)
    assert listed.index("lake:in") < listed.index("lake:new") < listed.index("lake:out")
    assert "nothing changed" in ts("churn", "lake", "--from", "2026-03-02T00:00:00Z")
