"""Growth as users get it is what lies on the mounts, wherever tables end and the tail begins."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from pyspark.sql import SparkSession

from tests.support.api import Api, serving
from tests.support.database import value
from tests.support.files import ROOT, SCOPES, Files
from tests.support.waiting import wait_until
from tristore.config import EventsSettings, Settings
from tristore.local.redis import EmbeddedRedis
from tristore.pipeline import jobs
from tristore.pipeline.session import PipelineConfig

STORAGE = "/timestore/v1/storage"
EVER = {"from": "2026-01-01T00:00:00Z"}
NAMES = ("a", "b", "c d")
DEPTH = 4


@dataclass(frozen=True)
class Bus:
    """The way of an event to the log: without a queue, or through a Redis of its own."""

    url: str
    workers: str
    redis: EmbeddedRedis | None = None

    @contextmanager
    def away(self) -> Iterator[None]:
        if self.redis is None:
            yield
            return
        self.redis.stop()
        yield
        assert self.redis.start() == self.url


@pytest.fixture(params=["inline", "redis"])
def bus(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bus]:
    if request.param == "inline":
        yield Bus("inline", "relay,reconcile")
        return
    with EmbeddedRedis(tmp_path / "redis") as redis:
        yield Bus(redis.start(), "relay,ingress,reconcile", redis)


@pytest.fixture
def api(config: PipelineConfig, bus: Bus, tmp_path: Path) -> Iterator[Api]:
    events = EventsSettings(queue="growth", lease_seconds=2, lock_seconds=2, poll_seconds=0.2)
    settings = Settings(
        database_url=config.database_url,
        redis_url=bus.url,
        data_dir=tmp_path / "data",
        events=events,
    )
    root = {"TRISTORE_TIMESTORE__ROOT": config.tables_root}
    with serving(settings, workers=bus.workers, **root) as api:
        yield api


@pytest.fixture
def client(api: Api) -> Iterator[httpx.Client]:
    headers = api.bearer("timestore:read", *SCOPES)
    with httpx.Client(base_url=api.url, headers=headers, timeout=60) as client:
        yield client


@pytest.mark.timeout(600)
def test_growth_is_what_lies_there_at_every_split_of_table_and_tail(
    bus: Bus,
    client: httpx.Client,
    api: Api,
    config: PipelineConfig,
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    chance = random.Random(6)
    mounts = [Files.make(api, client, tmp_path) for _ in range(2)]
    for portion in range(3):
        for _ in range(15):
            one_command(chance, mounts)
        if portion == 1:
            with bus.away():
                found_behind(mounts[0])
                one_command(chance, mounts)
                # The pipeline goes on with what the log has.
                jobs.run_available(config, spark)
        wait_until(lambda: settled(api), 60)
        # All of this portion in the tail, then all of it in the tables.
        compare(client, mounts)
        if portion < 2:
            jobs.run_available(config, spark)
            compare(client, mounts)


def one_command(chance: random.Random, mounts: list[Files]) -> None:
    """Some are refused: nothing is there, or something is in the way."""
    files, other = chance.sample(mounts, 2)
    roll, path = chance.random(), a_path(chance)
    there = files.listed(state="active")
    if roll < 0.5 or not there:
        files.put(path, b"x" * chance.randrange(1000))
        return
    chosen = chance.choice(there)["path"]
    if roll < 0.8:
        target = {"targetPath": path} | ({"targetMount": other.mount} if roll < 0.65 else {})
        answer = files.command("move" if roll < 0.75 else "copy", chosen, **target)
    else:
        answer = files.command("delete", chosen, recursive=True)
    assert answer.status_code < 500, answer.text


def a_path(chance: random.Random) -> str:
    return "/".join(chance.choices(NAMES, k=chance.randint(1, DEPTH)))


def found_behind(files: Files) -> None:
    """Files that came and went without the filestore: told by an import and by an audit."""
    folder = files.folder / "found" / "deep" / "er"
    folder.mkdir(parents=True)
    (folder / "kept").write_bytes(b"x" * 500)
    (folder / "lost").write_bytes(b"x" * 70)
    run_job(files, "import")
    (folder / "lost").unlink()
    (folder / "kept").write_bytes(b"x" * 321)
    run_job(files, "reconcile")


def run_job(files: Files, kind: str) -> None:
    made = files.client.post(f"{ROOT}/{kind}", json={"mount": files.mount, "path": "found"})
    assert made.status_code == 202, made.text
    ended = files.finished(f"{ROOT}/{kind}/{made.json()['id']}")
    assert ended["state"] == "completed", ended


def settled(api: Api) -> bool:
    """Every event that was told is in the log."""
    open_rows = "SELECT count(*) FROM bus.outbox WHERE state <> 'done'"
    return bool(value(api.database, open_rows) == 0)


def compare(client: httpx.Client, mounts: list[Files]) -> None:
    for files in mounts:
        lies = sizes(files)
        assert total(client, files, "") == lies[""]
        deep = max(lies, key=lambda path: (path.count("/"), path))
        assert total(client, files, deep) == lies[deep]
        told = {"": lies[""]}
        for depth in range(1, DEPTH + 1):
            told |= net(client, files, depth)
        # A folder in which nothing ever happened is not told; one that is gone holds nothing.
        assert {path: size for path, size in told.items() if size} == {
            path: size for path, size in lies.items() if size
        }


def sizes(files: Files) -> dict[str, int]:
    folders = [node["path"] for node in files.listed(kind="directory", state="active")]
    return {path: files.rollup(path)[0] for path in ["", *folders]}


def total(client: httpx.Client, files: Files, prefix: str) -> int:
    params = {"mount": files.mount, "prefix": prefix, "bucket": "1d", **EVER}
    answer = asked(client, "growth", **params)
    # Nothing is left out, though the newest events are in no table.
    assert not answer["tailTruncated"]
    return int(answer["points"][-1]["totalBytes"])


def net(client: httpx.Client, files: Files, depth: int) -> dict[str, int]:
    answer = asked(client, "churn", mount=files.mount, depth=depth, limit=1000, **EVER)
    return {item["prefix"]: item["netBytes"] for item in answer["items"]}


def asked(client: httpx.Client, what: str, **params: Any) -> dict[str, Any]:
    answer = client.get(f"{STORAGE}/{what}", params=params)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())
