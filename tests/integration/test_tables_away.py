"""The tables' folder is gone, as a disk that is not mounted: nothing is written in its place, and
no answer is a part of one."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psycopg
import pytest

from tests.support import log_tables
from tests.support.api import Api, own_api
from tests.support.timestore import ALL, BASE, Set

GOOD = {"at": "2026-11-15T12:00:00Z", "station": "a", "celsius": 1.5}
FED = "INSERT INTO timestore.fed SELECT 'events', epoch, 0, 16 FROM bus.ingress_head"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data") / "disk"


@pytest.fixture(scope="module")
def api(server_url: str, root: Path) -> Iterator[Api]:
    with own_api(server_url, "inline", TRISTORE_TIMESTORE__ROOT=str(root)) as api:
        yield api


@pytest.fixture(scope="module")
def http(api: Api) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=api.url, headers=api.bearer(*ALL), timeout=60) as client:
        yield client


@contextmanager
def away(folder: Path) -> Iterator[None]:
    elsewhere = folder.with_name(f"{folder.name} away")
    folder.rename(elsewhere)
    yield
    elsewhere.rename(folder)


def refused(answer: httpx.Response, root: Path) -> str:
    assert answer.status_code == 503, answer.text
    assert str(root) not in answer.text
    return str(answer.json()["detail"])


def test_rows_are_not_staged_where_a_disk_should_be(http: httpx.Client, root: Path) -> None:
    one = Set.make(http)
    assert one.rows(GOOD).status_code == 202
    with away(root):
        assert "mounted" in refused(one.rows(GOOD), root)
        assert not root.exists()
        root.mkdir()  # a mount point
        told = refused(one.rows(GOOD), root)
        assert list(root.iterdir()) == []
        root.rmdir()
    assert one.rows(GOOD).status_code == 202
    marker = root / "tristore-root"
    name = marker.read_text()
    assert name.strip() in told, "what to write where the tables were lost"
    marker.write_text("00000000-0000-0000-0000-000000000000\n")
    assert "another database" in refused(one.rows(GOOD), root)
    marker.write_text(name)
    assert one.rows(GOOD).status_code == 202


def test_what_was_cut_from_the_log_is_missed(http: httpx.Client, api: Api, root: Path) -> None:
    def ask(table: str) -> httpx.Response:
        return http.post(f"{BASE}/sql", json={"sql": f"SELECT count(*) FROM {table}"})

    def count(table: str) -> int:
        answer = ask(table)
        assert answer.status_code == 200, answer.text
        return int(answer.json()["rows"][0][0])

    log_tables.publish(api.database, 16)
    for name in ("events", "filestore_activity"):
        log_tables.commit(root, api.database, name, 16)
    with psycopg.connect(api.database, autocommit=True) as conn:
        conn.execute("DELETE FROM bus.workflow_events WHERE ingress_sequence < 9")
        conn.execute("UPDATE bus.ingress_head SET earliest = 9")
        with away(root):
            assert count("events") == 8, "without a pipeline there is nothing but the log"
        conn.execute(FED)
    assert (count("events"), count("filestore_activity")) == (16, 22)
    with away(root):
        assert "table events ends at event 0" in refused(ask("events"), root)
    with away(root / "filestore_activity"):
        for name in ("filestore_activity", "filestore_growth"):
            told = refused(ask(name), root)
            assert name in told and "TRISTORE_TIMESTORE__FILESTORE_SYNC" in told
        assert count("events") == 16
    log_tables.publish(api.database, 3)
    assert (count("events"), count("filestore_activity")) == (19, 25)
