"""Files over HTTP: put, get and delete, their conditions, ranges and what goes wrong."""

import base64
import hashlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.api import Api, own_api
from tests.support.database import rows
from tests.support.files import SCOPES, Files
from tests.support.waiting import wait_until

LIMIT = 6 * 2**20


@pytest.fixture(scope="module")
def api(server_url: str, redis_url: str) -> Iterator[Api]:
    with own_api(server_url, redis_url, TRISTORE_FILESTORE__MAX_UPLOAD_BYTES=str(LIMIT)) as api:
        yield api


@pytest.fixture(scope="module")
def client(api: Api) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=api.url, headers=api.bearer(*SCOPES), timeout=30) as client:
        yield client


@pytest.fixture
def files(api: Api, client: httpx.Client, tmp_path: Path) -> Files:
    return Files.make(api, client, tmp_path)


def hexdigest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_a_file_is_stored_read_back_replaced_and_remembered(files: Files) -> None:
    made = files.put("in/a b/ü.bin", b"first")
    assert made.status_code == 201
    node, journal_id = made.json()["node"], made.json()["journalId"]
    assert (node["mount"], node["path"], node["kind"]) == (files.mount, "in/a b/ü.bin", "file")
    assert (node["sizeBytes"], node["version"], node["state"]) == (5, 1, "active")
    assert node["checksum"] == f"sha256:{hexdigest(b'first')}"
    assert (files.folder / "in/a b/ü.bin").read_bytes() == b"first"
    again = files.put("in/a b/ü.bin", b"second one")
    assert again.status_code == 200
    assert again.json()["node"]["id"] == node["id"]
    assert (again.json()["node"]["version"], again.json()["journalId"] > journal_id) == (2, True)
    got = files.get("in/a b/ü.bin")
    assert (got.status_code, got.content) == (200, b"second one")
    assert got.headers["etag"] == again.headers["etag"]
    assert got.headers["x-checksum-sha256"] == hexdigest(b"second one")
    asked = files.client.head(files.url("in/a b/ü.bin"))
    same = ("content-length", "etag", "last-modified", "x-checksum-sha256", "accept-ranges")
    assert [asked.headers[name] for name in same] == [got.headers[name] for name in same]
    history = files.listed(f"/nodes/{node['id']}/history", limit=1)
    assert [(h["version"], h["sizeBytes"]) for h in history] == [(2, 10), (1, 5)]
    assert files.rollup() == (10, 1, 2)
    assert files.rollup("in") == (10, 1, 1)


def test_an_empty_file_and_one_larger_than_other_bodies_may_be(files: Files) -> None:
    large = os.urandom(5 * 2**20 + 3)
    for name, content in (("empty", b""), ("large", large)):
        assert files.put(name, content).status_code == 201
        assert files.get(name).content == content
    pieces = (large[at : at + 70_001] for at in range(0, len(large), 70_001))
    assert files.client.put(files.url("pieces"), content=pieces).status_code == 201
    assert files.node("pieces")["checksum"] == files.node("large")["checksum"]
    text = {"Content-Type": "application/json"}
    odd = files.client.put(files.url("odd.json"), content=b'{"a":NaN,"a":1}', headers=text)
    assert odd.status_code == 201


def test_what_is_larger_than_allowed_is_refused_however_its_length_is_told(files: Files) -> None:
    big = b"x" * (LIMIT + 1)
    announced = files.put("big", big)
    chunked = files.client.put(files.url("big"), content=(big[:65536] for _ in range(97)))
    for answer in (announced, chunked):
        assert answer.status_code == 413, answer.text
        assert str(LIMIT) in answer.json()["detail"]
    assert_untouched(files)


def test_an_upload_that_is_cut_leaves_nothing(files: Files) -> None:
    files.stored("kept", b"old")
    with socket.create_connection(("127.0.0.1", files.api.settings.port)) as wire:
        token = files.client.headers["authorization"]
        head = f"PUT {files.url('kept')} HTTP/1.1\r\nHost: x\r\nAuthorization: {token}\r\n"
        wire.sendall(f"{head}Content-Length: {5 * 2**20}\r\n\r\n".encode())
        wire.sendall(b"y" * 4 * 2**20)
        wait_until(lambda: staged(files))
    wait_until(lambda: not staged(files))
    assert files.get("kept").content == b"old"
    assert files.node("kept")["version"] == 1


def staged(files: Files) -> list[Path]:
    return [path for path in (files.folder / ".tristore").rglob("*") if path.is_file()]


def assert_untouched(files: Files) -> None:
    assert files.listed() == []
    assert [path for path in files.folder.iterdir() if path.name != ".tristore"] == []
    wait_until(lambda: not staged(files))


def test_a_change_meets_only_the_version_it_names(files: Files) -> None:
    assert files.put("f", b"1", if_match='"1"').status_code == 412
    first = files.put("f", b"1", if_none_match="*")
    assert first.status_code == 201
    assert files.put("f", b"2", if_none_match="*").status_code == 412
    assert files.put("f", b"2", if_match='"2"').status_code == 412
    second = files.put("f", b"2", if_match='"1"')
    assert second.status_code == 200
    stale = files.put("f", b"3", if_match=first.headers["etag"])
    assert stale.status_code == 412
    assert "2" in stale.json()["detail"]
    assert files.put("f", b"3", if_match=second.headers["etag"]).json()["node"]["version"] == 3
    assert files.put("absent", b"1", if_match=first.headers["etag"]).status_code == 412
    assert files.command("createDirectory", "d", headers={"if_match": '"1"'}).status_code == 412
    for wrong in ("", "x", '"0"', '"1", "2"', "*", '"-1"'):
        assert files.put("f", b"4", if_match=wrong).status_code == 400, wrong
    assert files.put("f", b"4", if_none_match='"1"').status_code == 400
    gone = files.client.delete(files.url("f"), headers={"If-Match": '"1"'})
    assert gone.status_code == 412
    assert files.get("f").content == b"3"


def test_a_checksum_that_does_not_fit_changes_nothing(files: Files) -> None:
    digest = hashlib.sha256(b"abc").digest()
    for number, given in enumerate((digest.hex(), base64.b64encode(digest).decode())):
        assert files.put(f"f{number}", b"abc", x_checksum_sha256=given).status_code == 201
    wrong = files.put("f0", b"abd", x_checksum_sha256=digest.hex())
    assert wrong.status_code == 422
    assert wrong.json()["type"] == "urn:tristore:checksum-mismatch"
    assert files.put("f2", b"abd", x_checksum_sha256=digest.hex()).status_code == 422
    assert files.put("f2", b"abc", x_checksum_sha256="abc").status_code == 400
    assert files.get("f0").content == b"abc"
    assert files.get("f2").status_code == 404


@pytest.mark.parametrize(
    ("asked", "status", "content", "told"),
    [
        ("bytes=0-3", 206, b"0123", "bytes 0-3/10"),
        ("bytes=4-", 206, b"456789", "bytes 4-9/10"),
        ("bytes=-3", 206, b"789", "bytes 7-9/10"),
        ("bytes=-30", 206, b"0123456789", "bytes 0-9/10"),
        ("bytes=8-99", 206, b"89", "bytes 8-9/10"),
        ("bytes=10-", 416, None, "bytes */10"),
        ("bytes=-0", 416, None, "bytes */10"),
        ("bytes=0-0,2-2", 416, None, "bytes */10"),
        ("bytes=" + ",".join(f"{n}-{n}" for n in range(1500)), 416, None, "bytes */10"),
        ("bytes=5-4", 200, b"0123456789", None),
        ("lines=1-2", 200, b"0123456789", None),
        ("bytes=x-y", 200, b"0123456789", None),
    ],
)
def test_one_range_of_a_file_is_given(
    ranged: Files, asked: str, status: int, content: bytes | None, told: str | None
) -> None:
    answer = ranged.get("digits", range=asked)
    assert answer.status_code == status
    assert answer.headers.get("content-range") == told
    assert content is None or answer.content == content


@pytest.fixture(scope="module")
def ranged(api: Api, client: httpx.Client, tmp_path_factory: pytest.TempPathFactory) -> Files:
    files = Files.make(api, client, tmp_path_factory.mktemp("ranged"))
    files.stored("digits", b"0123456789")
    return files


def test_a_reader_that_has_the_content_is_not_sent_it_again(files: Files) -> None:
    files.stored("f", b"0123456789")
    whole = files.get("f")
    etag, date = whole.headers["etag"], whole.headers["last-modified"]
    for headers in (
        {"if_none_match": etag},
        {"if_none_match": f'"x", {etag}'},
        {"if_none_match": "*"},
        {"if_modified_since": date},
    ):
        answer = files.get("f", **headers)
        assert (answer.status_code, answer.content) == (304, b""), headers
        assert answer.headers["etag"] == etag
    assert files.get("f", if_none_match='"x"', if_modified_since=date).status_code == 200
    assert files.get("f", if_match='"7"').status_code == 412
    assert files.get("f", if_match=etag).status_code == 200
    assert files.get("f", if_unmodified_since="Mon, 01 Jan 2001 00:00:00 GMT").status_code == 412
    assert files.get("f", if_unmodified_since=date).status_code == 200
    assert files.get("f", if_range=etag, range="bytes=1-2").content == b"12"
    files.stored("f", b"abcdefghij")
    assert files.get("f", if_range=etag, range="bytes=1-2").content == b"abcdefghij"


def test_a_file_made_anew_is_never_taken_for_the_one_before(files: Files) -> None:
    files.stored("f", b"before")
    etag = files.get("f").headers["etag"]
    assert files.client.delete(files.url("f")).status_code == 200
    assert files.stored("f", b"after!")["version"] == 1
    assert files.get("f", if_none_match=etag).content == b"after!"
    assert files.get("f", if_range=etag, range="bytes=3-").status_code == 200
    assert files.put("f", b"lost", if_match=etag).status_code == 412


def test_a_repeated_key_gets_the_same_answer_and_another_request_none(files: Files) -> None:
    first = files.put("f", b"once", idempotency_key="k1")
    again = files.put("f", b"once", idempotency_key="k1")
    assert (again.status_code, again.json()) == (first.status_code, first.json())
    assert again.headers["idempotency-replayed"] == "true"
    assert "idempotency-replayed" not in first.headers
    assert files.put("f", b"twice", idempotency_key="k1").status_code == 409
    assert files.put("g", b"once", idempotency_key="k1").status_code == 409
    assert files.node("f")["version"] == 1
    move = {"targetPath": "g", "headers": {"idempotency_key": "k2"}}
    moved = [files.command("move", "f", **dict(move)) for _ in range(2)]
    assert moved[0].json() == moved[1].json()
    for bad in ("", "x" * 201):
        assert files.put("h", b"", idempotency_key=bad).status_code == 400
    entries = rows(
        files.api.database,
        "SELECT command FROM filestore.journal_entries WHERE path = 'f' "
        "AND mount_id = (SELECT id FROM filestore.mounts WHERE name = %s)",
        files.mount,
    )
    assert sorted(row["command"] for row in entries) == ["move", "put"]


@pytest.mark.parametrize("size", [3, 2**20])
def test_a_repeat_is_answered_though_its_conditions_hold_no_more(files: Files, size: int) -> None:
    """What it would meet is what it did itself, and what others did since."""
    content = os.urandom(size)

    def put(key: str, **condition: str) -> httpx.Response:
        return files.put("f", content, idempotency_key=f"{key}-{size}", **condition)

    made = [put("made", if_none_match="*") for _ in range(2)]
    replaced = [put("replaced", if_match='"1"') for _ in range(2)]
    etag = replaced[0].headers["etag"]
    again = [put("again", if_match=etag) for _ in range(2)]
    moving = {"if_match": again[0].headers["etag"], "idempotency_key": f"moved-{size}"}
    moved = [files.command("move", "f", targetPath="g", headers=moving) for _ in range(2)]
    leaving = {"If-Match": moved[0].headers["etag"], "Idempotency-Key": f"gone-{size}"}
    gone = [files.client.delete(files.url("g"), headers=leaving)]
    files.stored("g", b"made anew")
    gone.append(files.client.delete(files.url("g"), headers=leaving))
    for first, second in (made, replaced, again, moved, gone):
        assert first.is_success, first.text
        assert (second.status_code, second.json()) == (first.status_code, first.json())
        assert second.headers["idempotency-replayed"] == "true"
    assert files.get("g").content == b"made anew"


def test_a_directory_is_listed_and_not_downloaded(files: Files) -> None:
    files.stored("d/f")
    refused = files.get("d")
    assert refused.status_code == 409
    assert f"/nodes/{files.node('d')['id']}/children" in refused.json()["detail"]
    assert files.client.delete(files.url("d")).status_code == 409
    gone = files.client.delete(files.url("d"), params={"recursive": "true"})
    assert gone.status_code == 200
    assert files.get("d/f").status_code == 404


def test_a_flipped_bit_is_never_sent_as_if_it_were_whole(files: Files) -> None:
    content = os.urandom(3 * 2**20)
    for name, size in (("large", len(content)), ("small", 1000)):
        files.stored(name, content[:size])
        flip(files.folder / name, size // 2)
    small = files.get("small")
    assert small.status_code == 502
    assert small.json()["type"] == "urn:tristore:content-damaged"
    received = b""
    with pytest.raises(httpx.RemoteProtocolError):
        with files.client.stream("GET", files.url("large")) as answer:
            for piece in answer.iter_raw():
                received += piece
    assert len(received) < len(content)
    query = "SELECT path FROM filestore.drifts ORDER BY path"
    assert [row["path"] for row in rows(files.api.database, query)] == ["large", "small"]


def flip(path: Path, at: int) -> None:
    """One bit, as a failing disk does it: nothing else about the file changes."""
    times = path.stat()
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1]))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
