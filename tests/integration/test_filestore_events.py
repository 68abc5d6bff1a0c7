"""Each event the filestore sends: the real action over HTTP, and its row in the log."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.api import Api, own_api
from tests.support.database import rows
from tests.support.files import ROOT, SCOPES, Files
from tests.support.waiting import wait_until

CATALOGUE = {
    "filestore.node.created",
    "filestore.node.updated",
    "filestore.node.deleted",
    "filestore.node.moved",
    "filestore.node.copied",
    "filestore.node.reconciled",
    "filestore.node.missing",
    "filestore.nodes.imported",
    "filestore.drift.detected",
    "filestore.command.completed",
}


@pytest.fixture(scope="module")
def api(server_url: str, redis_url: str) -> Iterator[Api]:
    with own_api(server_url, redis_url, workers="relay,ingress,reconcile") as api:
        yield api


@pytest.fixture(scope="module")
def client(api: Api) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=api.url, headers=api.bearer(*SCOPES), timeout=30) as client:
        yield client


@pytest.fixture
def files(api: Api, client: httpx.Client, tmp_path: Path) -> Files:
    return Files.make(api, client, tmp_path)


def told(files: Files, type: str, correlation_id: str, source: str = "filestore.api") -> Any:
    """The payload of the event, after what every event must have is seen."""
    event = files.event(type, correlation_id)
    assert (event["type"], event["source"]) == (type, source)
    assert (event["correlation_id"], event["schema_version"]) == (correlation_id, 1)
    payload = event["payload"]
    assert payload.get("mount") == files.mount
    return payload


def test_created_and_updated(files: Files) -> None:
    node = files.put("in/f", b"12345", x_correlation_id="c-put").json()["node"]
    payload = told(files, "filestore.node.created", "c-put")
    query = "SELECT payload FROM bus.workflow_events WHERE type = %s AND correlation_id = %s"
    wait_until(lambda: len(rows(files.api.database, query, "filestore.node.created", "c-put")) == 2)
    made = {
        row["payload"]["path"]: row["payload"]
        for row in rows(files.api.database, query, "filestore.node.created", "c-put")
    }
    assert set(made) == {"in", "in/f"}
    payload = made["in/f"]
    assert (payload["nodeId"], payload["version"], payload["kind"]) == (node["id"], 1, "file")
    assert (payload["sizeBytes"], payload["sizeDelta"], payload["command"]) == (5, 5, "put")
    assert (payload["checksum"], payload["principal"]) == (node["checksum"], "test")
    assert payload["journalId"] == node["journalId"]
    files.put("in/f", b"123", x_correlation_id="c-again")
    payload = told(files, "filestore.node.updated", "c-again")
    assert (payload["version"], payload["sizeBytes"], payload["sizeDelta"]) == (2, 3, -2)
    headers = {"x_correlation_id": "c-meta"}
    files.command("updateMetadata", "in/f", metadata={"a": 1}, headers=headers)
    payload = told(files, "filestore.node.updated", "c-meta")
    assert (payload["command"], payload["sizeDelta"]) == ("updateMetadata", 0)


def test_moved_copied_and_deleted_tell_every_node(files: Files) -> None:
    for name in ("d/1", "d/2"):
        files.stored(name, b"xyz")
    for command, type, fields in (
        ("copy", "filestore.node.copied", {"targetPath": "e"}),
        ("move", "filestore.node.moved", {"targetPath": "g"}),
        ("delete", "filestore.node.deleted", {"recursive": True}),
    ):
        path = "g" if command == "delete" else "d"
        headers = {"x_correlation_id": f"c-{command}"}
        answer = files.command(command, path, headers=headers, **fields)
        assert answer.status_code == 200, answer.text
        told(files, type, f"c-{command}")
        told(files, "filestore.command.completed", f"c-{command}")
    query = "SELECT payload FROM bus.workflow_events WHERE type = %s AND correlation_id = %s"

    def payloads(type: str, correlation_id: str) -> dict[str, Any]:
        wait_until(lambda: len(rows(files.api.database, query, type, correlation_id)) == 3)
        found = rows(files.api.database, query, type, correlation_id)
        return {row["payload"]["path"]: row["payload"] for row in found}

    copied = payloads("filestore.node.copied", "c-copy")
    assert set(copied) == {"e", "e/1", "e/2"}
    assert copied["e/1"]["sourceNodeId"] and copied["e/1"]["sizeDelta"] == 3
    moved = payloads("filestore.node.moved", "c-move")
    assert {p: m["previousPath"] for p, m in moved.items()} == {
        "g": "d",
        "g/1": "d/1",
        "g/2": "d/2",
    }
    assert {m["sizeDelta"] for m in moved.values()} == {0}
    deleted = payloads("filestore.node.deleted", "c-delete")
    assert sorted((p, d["sizeDelta"], d["state"]) for p, d in deleted.items()) == [
        ("g", 0, "deleted"),
        ("g/1", -3, "deleted"),
        ("g/2", -3, "deleted"),
    ]


def test_a_move_between_mounts_counts_on_both(files: Files, tmp_path: Path) -> None:
    other = Files.make(files.api, files.client, tmp_path)
    files.stored("f", b"12345")
    headers = {"x_correlation_id": "c-across"}
    files.command("move", "f", targetPath="g", targetMount=other.mount, headers=headers)
    payload = told(other, "filestore.node.moved", "c-across")
    assert (payload["previousMount"], payload["previousPath"]) == (files.mount, "f")
    assert (payload["path"], payload["sizeDelta"]) == ("g", 5)
    assert (files.rollup(), other.rollup()) == ((0, 0, 0), (5, 1, 0))


def test_a_command_that_ended_tells_how(files: Files) -> None:
    headers = {"x_correlation_id": "c-done", "idempotency_key": "k"}
    answer = files.put("f", b"12345", **headers)
    payload = told(files, "filestore.command.completed", "c-done")
    assert payload["journalId"] == answer.json()["journalId"]
    assert (payload["command"], payload["path"], payload["status"]) == ("put", "f", "completed")
    assert (payload["bytes"], payload["nodesAffected"]) == (5, 1)
    assert (payload["idempotencyKey"], payload["principal"]) == ("k", "test")
    assert payload["durationMs"] >= 0


def test_what_was_there_before_is_imported(files: Files) -> None:
    (files.folder / "old").mkdir()
    for number in range(3):
        (files.folder / f"old/{number}").write_bytes(b"x" * number)
    job = ask(files, "import", "c-import", checksums=True)
    assert job["progress"]["imported"] == 4, job
    payload = told(files, "filestore.nodes.imported", "c-import", "filestore.import")
    assert {n["path"]: n["sizeBytes"] for n in payload["nodes"]} == {
        "old": 0,
        "old/0": 0,
        "old/1": 1,
        "old/2": 2,
    }
    assert payload["sizeDelta"] == 3
    assert files.get("old/2").content == b"xx"
    assert files.rollup() == (3, 3, 1)


def test_a_change_behind_its_back_is_detected_and_settled(files: Files) -> None:
    files.stored("changed", b"before")
    files.stored("lost", b"four")
    (files.folder / "changed").write_bytes(b"afterwards")
    (files.folder / "lost").unlink()
    ask(files, "reconcile", "c-audit")
    source = "filestore.reconcile"
    assert told(files, "filestore.drift.detected", "c-audit", source)["reason"] in (
        "modified",
        "deleted",
    )
    payload = told(files, "filestore.node.reconciled", "c-audit", source)
    assert (payload["path"], payload["outcome"]) == ("changed", "updated")
    assert (payload["sizeBytes"], payload["sizeDelta"], payload["version"]) == (10, 4, 2)
    payload = told(files, "filestore.node.missing", "c-audit", source)
    assert (payload["path"], payload["state"], payload["sizeDelta"]) == ("lost", "missing", -4)
    assert files.get("changed").content == b"afterwards"
    assert files.get("lost").status_code == 404
    assert files.rollup() == (10, 1, 0)


def test_rotten_bytes_are_told_and_never_taken_for_a_new_version(files: Files) -> None:
    node = files.stored("f", b"sound")
    path = files.folder / "f"
    times = path.stat()
    with open(path, "r+b") as file:
        file.write(b"r")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert files.get("f", x_correlation_id="c-rot").status_code == 502
    told(files, "filestore.drift.detected", "c-rot")
    payload = told(files, "filestore.node.reconciled", "c-rot", "filestore.reconcile")
    assert (payload["outcome"], payload["state"]) == ("inconsistent", "inconsistent")
    assert payload["checksum"] == node["checksum"]
    ask(files, "reconcile", "c-rot-audit")
    assert files.get("f").status_code == 502
    path.write_bytes(b"sound")
    ask(files, "reconcile", "c-restored")
    wait_until(lambda: files.node("f")["state"] == "active")
    assert files.get("f").content == b"sound"


def ask(files: Files, kind: str, correlation_id: str, **body: Any) -> dict[str, Any]:
    answer = files.client.post(
        f"{ROOT}/{kind}",
        json={"mount": files.mount, **body},
        headers={"X-Correlation-Id": correlation_id},
    )
    assert answer.status_code == 202, answer.text
    job = files.finished(answer.headers["location"])
    assert job["state"] == "completed", job
    return job


def test_every_type_of_the_catalogue_was_sent_and_none_was_dead_lettered(api: Api) -> None:
    """Runs last: the tests above have performed every action."""
    found = rows(api.database, "SELECT DISTINCT type FROM bus.workflow_events")
    assert {row["type"] for row in found} == CATALOGUE
    assert rows(api.database, "SELECT * FROM bus.dead_letters") == []
    for mount in httpx.get(f"{api.url}{ROOT}/mounts", headers=api.bearer("filestore:read")).json()[
        "items"
    ]:
        assert told_bytes(api, mount["name"]) == mount["rollup"]["sizeBytes"], mount["name"]


def told_bytes(api: Api, mount: str) -> int:
    """What lies on a mount by the events alone; a move away counts against the mount it left."""
    query = """
        SELECT coalesce(sum(CASE WHEN payload->>'mount' = %s THEN 1 ELSE -1 END
            * (payload->>'sizeDelta')::bigint), 0)::bigint AS sum
        FROM bus.workflow_events
        WHERE (type LIKE 'filestore.node.%%' OR type = 'filestore.nodes.imported')
            AND %s IN (payload->>'mount', payload->>'previousMount')
    """
    return int(rows(api.database, query, mount, mount)[0]["sum"])
