"""Mounts, commands, lists and the journal over HTTP, as a client meets them."""

import json
import os
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.api import Api, own_api
from tests.support.database import dead_letters
from tests.support.files import ROOT, SCOPES, Files
from tests.support.parts import part
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
def api(server_url: str, redis_url: str) -> Iterator[Api]:
    with own_api(server_url, redis_url) as api:
        yield api


@pytest.fixture(scope="module")
def client(api: Api) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=api.url, headers=api.bearer(*SCOPES), timeout=30) as client:
        yield client


@pytest.fixture
def files(api: Api, client: httpx.Client, tmp_path: Path) -> Files:
    return Files.make(api, client, tmp_path)


def test_every_command_changes_disk_and_tree_alike(files: Files) -> None:
    directory = files.command("createDirectory", "a/b").json()["node"]
    assert (directory["kind"], directory["path"]) == ("directory", "a/b")
    files.stored("a/b/one", b"1111")
    moved = files.command("move", "a/b/one", targetPath="c/two")
    assert moved.status_code == 200, moved.text
    assert moved.json()["node"]["path"] == "c/two"
    copied = files.command("copy", "c/two", targetPath="a/three").json()["node"]
    assert copied["checksum"] == moved.json()["node"]["checksum"]
    noted = files.command("updateMetadata", "a/three", metadata={"by": "me", "n": {"x": 1}})
    assert noted.json()["node"]["metadata"] == {"by": "me", "n": {"x": 1}}
    files.command("updateMetadata", "a/three", metadata={"by": None, "n": {"y": 2}})
    assert files.node("a/three")["metadata"] == {"n": {"x": 1, "y": 2}}
    assert files.command("delete", "a").status_code == 409
    assert files.command("move", "c", targetPath="a/c").status_code == 200
    assert (files.folder / "a/c/two").read_bytes() == b"1111"
    assert files.rollup() == (8, 2, 3)
    gone = files.command("delete", "a", recursive=True)
    assert (gone.status_code, gone.json()["node"]["state"]) == (200, "deleted")
    assert not (files.folder / "a").exists()
    assert files.rollup() == (0, 0, 0)
    assert len(files.listed(state="deleted")) == 5
    assert files.listed() == []


def test_the_commands_of_the_page_are_carried_out(files: Files, tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/filestore.md").read_text("utf-8")
    lines = [json.loads(line) for line in page.splitlines() if line.startswith('{"command"')]
    assert {line["command"] for line in lines} == {
        *("createDirectory", "move", "copy", "delete", "updateMetadata")
    }
    archive = Files.make(files.api, files.client, tmp_path)
    names = {"media": files.mount, "archive": archive.mount}
    files.stored("in/f7.txt", b"7")
    for line in lines:
        body = {name: names.get(str(value), value) for name, value in line.items()}
        answer = files.client.post(f"{ROOT}/commands", json=body)
        assert answer.status_code == 200, (line, answer.text)
    assert (archive.folder / "out/f7.txt").read_bytes() == b"7"
    assert not (files.folder / "out").exists()


def test_a_command_nobody_knows_or_that_cannot_be_is_refused(files: Files) -> None:
    files.stored("f")
    for status, command, fields in (
        (422, "explode", {}),
        (422, "move", {}),
        (422, "createDirectory", {"recursive": True}),
        (422, "delete", {"metadata": {}}),
        (422, "updateMetadata", {"metadata": [1]}),
        (400, "move", {"targetPath": "../f"}),
        (404, "move", {"targetPath": "g", "targetMount": "nowhere"}),
        (409, "copy", {"targetPath": "f"}),
        (409, "createDirectory", {}),
    ):
        answer = files.command(command, "f", **fields)
        assert answer.status_code == status, (command, answer.text)
        assert answer.headers["content-type"] == "application/problem+json"
    for command in ("delete", "move", "copy", "updateMetadata"):
        fields = {"targetPath": "x"} if command in ("move", "copy") else {}
        fields |= {"metadata": {}} if command == "updateMetadata" else {}
        assert files.command(command, "absent", **fields).status_code == 404
    for body in (b"", b"[]", b"{", b'{"command":"delete","command":"move"}'):
        headers = {"Content-Type": "application/json"}
        answer = files.client.post(f"{ROOT}/commands", content=body, headers=headers)
        assert answer.status_code == 422
    assert files.get("f").status_code == 200


def test_long_work_can_be_followed_instead_of_waited_for(files: Files) -> None:
    for number in range(20):
        files.stored(f"d/{number}", b"x" * number)
    answer = files.command("copy", "d", targetPath="e", headers={"prefer": "respond-async"})
    assert (answer.status_code, set(answer.json())) == (202, {"journalId"})
    entry = files.finished(answer.headers["location"])
    assert (entry["state"], entry["nodesAffected"], entry["error"]) == ("completed", 21, None)
    assert files.rollup("e") == files.rollup("d") == (190, 20, 0)


def test_lists_are_paged_by_key_and_filtered(files: Files) -> None:
    for name in ("a/1", "a/2", "a-b/1", "b/1", "b/c/2"):
        files.stored(name, name.encode())
    files.command("delete", "b/1")
    assert [n["path"] for n in files.listed(limit=2, kind="file")] == [
        *("a-b/1", "a/1", "a/2", "b/c/2")
    ]
    assert [n["path"] for n in files.listed(prefix="a", limit=1)] == ["a/1", "a/2"]
    assert [n["path"] for n in files.listed(prefix="a/", kind="file")] == ["a/1", "a/2"]
    assert [n["path"] for n in files.listed(state="deleted")] == ["b/1"]
    top = files.listed(f"/nodes/{files.node('')['id']}/children", limit=1)
    assert [(n["path"], n["rollup"]["files"]) for n in top] == [("a", 2), ("a-b", 1), ("b", 1)]
    for params in ({"limit": 0}, {"limit": 1001}, {"cursor": "made-up"}, {"colour": "red"}):
        refused = files.client.get(f"{ROOT}/nodes", params={"mount": files.mount, **params})
        assert refused.status_code == 422, params
    assert files.client.get(f"{ROOT}/mounts", params={"cursor": "made up"}).status_code == 422
    for path in ("0", str(2**63), "x", "999999999"):
        assert files.client.get(f"{ROOT}/nodes/{path}").status_code in (404, 422)


def test_the_journal_is_a_feed_to_resume_from(files: Files) -> None:
    start = files.stored("start")["journalId"]
    made = [files.put(f"f{n}").json()["journalId"] for n in range(5)]
    refused = files.command("move", "f0", targetPath="f1")
    assert refused.status_code == 409
    feed = files.listed("/journal", after=start, limit=2)
    mine = [e for e in feed if e["mount"] == files.mount and e["state"] == "completed"]
    assert [e["id"] for e in mine] == made
    assert {(e["command"], e["principal"]) for e in mine} == {("put", "test")}
    one = files.client.get(f"{ROOT}/journal/{made[2]}").json()
    assert (one["path"], one["state"], one["nodesAffected"]) == ("f2", "completed", 1)
    assert files.client.get(f"{ROOT}/journal/{2**40}").status_code == 404


def test_the_bus_being_away_delays_nothing_and_its_backlog_drains(files: Files) -> None:
    """No relay has run in this module so far."""
    files.put("f", b"1", x_correlation_id="c-away")
    reader = files.api.bearer("events:read")

    def waiting() -> int:
        answer = httpx.get(f"{files.api.url}/admin/event-health", headers=reader)
        return int(answer.json()["outbox"]["pending"])

    assert waiting() >= 2
    with part(files.api.settings, "work", "relay,ingress"):
        payload = files.event("filestore.node.created", "c-away")["payload"]
        wait_until(lambda: waiting() == 0)
    assert (payload["mount"], payload["path"]) == (files.mount, "f")
    assert dead_letters(files.api.database) == []


def test_a_mount_is_refused_with_the_reason(files: Files, tmp_path: Path) -> None:
    post = files.client.post
    specs: list[tuple[int, dict[str, Any]]] = [
        (422, {"name": "x1", "kind": "local", "root": str(tmp_path / "absent")}),
        (422, {"name": "x2", "kind": "local", "root": "/etc"}),
        (422, {"name": "x3", "kind": "local", "root": "relative"}),
        (422, {"name": "Upper", "kind": "local", "root": str(tmp_path)}),
        (422, {"name": "x4", "kind": "ftp", "root": str(tmp_path)}),
        (422, {"name": "x5", "kind": "local", "root": str(tmp_path), "bucket": "b"}),
        (422, {"name": "x6", "kind": "s3", "bucket": "b", "credentials": "AKIA:secret"}),
        (422, {"name": "x7", "kind": "s3", "bucket": "b", "endpoint": "http://127.0.0.1:9"}),
        (409, {"name": files.mount, "kind": "local", "root": str(tmp_path)}),
    ]
    for status, spec in specs:
        answer = post(f"{ROOT}/mounts", json=spec)
        assert answer.status_code == status, (spec, answer.text)
        assert len(answer.json()["detail"]) > 5
    found = files.client.get(f"{ROOT}/mounts/{files.mount}").json()
    assert (found["root"], found["access"]) == (str(files.folder), "readWrite")
    reader = files.api.bearer("filestore:read")
    seen = httpx.get(f"{files.api.url}{ROOT}/mounts/{files.mount}", headers=reader)
    assert str(files.folder) not in seen.text


def test_an_observed_mount_is_not_written_to(files: Files, tmp_path: Path) -> None:
    observed = Files.make(files.api, files.client, tmp_path, access="observe")
    assert observed.put("f").status_code == 403
    assert observed.command("createDirectory", "d").status_code == 403
    assert list(observed.folder.iterdir()) == []


def test_a_reader_that_leaves_does_not_keep_the_file_open(files: Files) -> None:
    files.stored("large", bytes(48 * 2**20))
    with socket.socket() as wire:
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        wire.connect(("127.0.0.1", files.api.settings.port))
        token = files.client.headers["authorization"]
        head = f"GET {files.url('large')} HTTP/1.1\r\nHost: x\r\nAuthorization: {token}\r\n\r\n"
        wire.sendall(head.encode())
        assert wire.recv(4096).startswith(b"HTTP/1.1 200")
        wait_until(lambda: opened(files, "large"))
    wait_until(lambda: not opened(files, "large"))
    assert files.node("large")["state"] == "active"


def opened(files: Files, name: str) -> list[str]:
    """The descriptors through which the API holds a file of the mount."""
    found = []
    for number in os.listdir(f"/proc/{files.api.pid}/fd"):
        with suppress(FileNotFoundError):  # closed meanwhile
            found.append(os.readlink(f"/proc/{files.api.pid}/fd/{number}"))
    return [link for link in found if link == str(files.folder / name)]
