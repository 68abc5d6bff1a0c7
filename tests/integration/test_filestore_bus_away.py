"""Files are changed while the bus is away: nobody waits for it, and it hears of all of it, once."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.api import own_api
from tests.support.database import dead_letters, log_count, rows
from tests.support.files import SCOPES, Files
from tests.support.waiting import wait_until
from tristore.local.redis import EmbeddedRedis

SOURCE = 'tristore_outbox_waiting_events{source="filestore.api"}'
# Content is streamed and a stalled command would hang: then the client gives up.
PATIENCE = 15


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[EmbeddedRedis]:
    with EmbeddedRedis(tmp_path / "redis") as server:
        yield server


def test_files_change_while_redis_is_away_and_each_change_is_told_once(
    server_url: str, redis: EmbeddedRedis, tmp_path: Path
) -> None:
    redis_url = redis.start()
    with (
        own_api(server_url, redis_url, workers="relay,ingress") as api,
        httpx.Client(
            base_url=api.url, headers=api.bearer(*SCOPES, "events:read"), timeout=PATIENCE
        ) as client,
    ):
        files = Files.make(api, client, tmp_path)
        commands = change(files, "before")
        wait_until(lambda: waiting(client) == 0)
        told = log_count(api.database)
        assert told > commands

        redis.stop()
        commands += change(files, "during")
        open_rows = "SELECT event_id FROM bus.outbox WHERE state <> 'done'"
        backlog = len(rows(api.database, open_rows))
        assert backlog == told, "the same commands make the same events"
        wait_until(lambda: health(client)["outbox"]["pending"] == backlog)
        wait_until(lambda: waiting_by_source(client) == backlog)
        assert health(client)["queue"]["error"]
        assert log_count(api.database) == told

        assert redis.start() == redis_url
        commands += change(files, "after")
        wait_until(lambda: waiting(client) == 0)
        check_log(files, commands)


def change(files: Files, name: str) -> int:
    """A life of a few files; says how many commands it took."""
    answers = [
        files.put(f"{name}/a", b"1"),
        files.put(f"{name}/a", b"22"),
        files.put(f"{name}/deep/b", b"333"),
        files.command("createDirectory", f"{name}/empty"),
        files.command("copy", f"{name}/deep", targetPath=f"{name}/copy"),
        files.command("updateMetadata", f"{name}/a", metadata={"k": 1}),
        files.command("move", f"{name}/deep", targetPath=f"{name}/moved"),
        files.command("delete", f"{name}/copy", recursive=True),
    ]
    statuses = [answer.status_code for answer in answers]
    assert statuses == [201, 200, 201, 200, 200, 200, 200, 200]
    assert files.get(f"{name}/moved/b").content == b"333"
    return len(answers)


def health(client: httpx.Client) -> dict[str, Any]:
    answer = client.get("/admin/event-health")
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def waiting(client: httpx.Client) -> int:
    outbox = health(client)["outbox"]
    return int(outbox["pending"] + outbox["enqueued"])


def waiting_by_source(client: httpx.Client) -> float:
    lines = client.get("/metrics").text.splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(SOURCE))


def check_log(files: Files, commands: int) -> None:
    """The log tells the end of every journal entry and every version of every node, each once,
    and nothing else."""
    url = files.api.database
    log = rows(url, "SELECT type, payload FROM bus.workflow_events ORDER BY ingress_sequence")
    ended = Counter(
        row["payload"]["journalId"] for row in log if row["type"] == "filestore.command.completed"
    )
    versions = Counter(
        (payload["nodeId"], payload["version"], payload["journalId"])
        for payload in (row["payload"] for row in log if row["type"].startswith("filestore.node."))
    )
    journal = rows(url, "SELECT id FROM filestore.journal_entries WHERE state = 'completed'")
    kept = rows(url, "SELECT node_id, version, journal_id FROM filestore.snapshots")
    assert ended == Counter(row["id"] for row in journal)
    assert len(journal) == commands
    assert versions == Counter((str(r["node_id"]), r["version"], r["journal_id"]) for r in kept)
    assert len(log) == ended.total() + versions.total()
    assert dead_letters(url) == []
