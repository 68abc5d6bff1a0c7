"""Hostile HTTP (S31, S47, S48, S13): cut, refused with a reason, never a 500, nothing stored."""

import json
import socket
import time
from collections.abc import Iterator

import httpx
import pytest

from tests.support.api import Api, own_api

EVENT = b'{"type":"a.b.c","source":"s","payload":{}}'
SHORT = {"TRISTORE_HTTP__HEADER_SECONDS": "1", "TRISTORE_HTTP__BODY_SECONDS": "1"}


@pytest.fixture(scope="module")
def api(server_url: str, redis_url: str) -> Iterator[Api]:
    with own_api(server_url, redis_url, **SHORT) as api:
        yield api


@pytest.fixture
def nothing_stored(api: Api) -> Iterator[None]:
    before = api.stored()
    yield
    assert api.stored() == before


class Wire:
    """A connection on which bytes are sent as they are given."""

    def __init__(self, api: Api) -> None:
        self.socket = socket.create_connection(("127.0.0.1", api.settings.port), timeout=60)

    def __enter__(self) -> "Wire":
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def rest(self) -> bytes:
        """Everything until the server closes; fails if it never does."""
        found = b""
        try:
            while chunk := self.socket.recv(65536):
                found += chunk
        except ConnectionResetError:
            pass
        return found


def head(api: Api, *lines: str, path: str = "/v1/events") -> bytes:
    token = api.bearer("events:publish")["Authorization"]
    first = [f"POST {path} HTTP/1.1", "Host: x", f"Authorization: {token}"]
    return "\r\n".join([*first, *lines, "", ""]).encode()


def status(answer: bytes) -> int:
    """The status of a refusal, which must say why in a problem document."""
    header, _, body = answer.partition(b"\r\n\r\n")
    assert b"application/problem+json" in header, answer[:300]
    document = json.loads(body)
    assert document["detail"]
    assert int(header.split()[1]) == document["status"]
    return int(document["status"])


@pytest.mark.parametrize(
    "lines",
    [
        ("Content-Length: 42", "Transfer-Encoding: chunked"),
        ("Transfer-Encoding: chunked", "Content-Length: 42"),
        ("Content-Length: 42", "Content-Length: 42"),
        ("Content-Length: 42", "Content-Length: 41"),
        ("Content-Length: 42, 42",),
        ("Content-Length: -1",),
        ("Content-Length: +42",),
        ("Content-Length: abc",),
        ("Transfer-Encoding: chunked", "Transfer-Encoding: chunked"),
        ("Transfer-Encoding: chunked, identity",),
        ("Content-Length : 42",),
        (" folded: line",),
    ],
)
def test_a_body_with_two_ends_is_refused(
    api: Api, nothing_stored: None, lines: tuple[str, ...]
) -> None:
    # A body that is good in the reading a lenient server would choose.
    chunked = b"%x\r\n%b\r\n0\r\n\r\n" % (len(EVENT), EVENT)
    with Wire(api) as wire:
        wire.send(head(api, *lines) + (chunked if "chunked" in str(lines) else EVENT))
        assert status(wire.rest()) == 400


@pytest.mark.parametrize(
    "sent",
    [b"", b"POST /v1/ev", b"POST /v1/events HTTP/1.1\r\nHost: x\r\nX-Half: ", b"\r\n\r\n"],
)
def test_a_head_that_never_ends_is_closed(api: Api, sent: bytes) -> None:
    with Wire(api) as wire:
        wire.send(sent)
        answer = wire.rest()  # the socket's time-out is the limit
        assert not answer or status(answer) == 408


def test_a_head_that_trickles_is_closed(api: Api) -> None:
    with Wire(api) as wire:
        deadline = time.monotonic() + 60
        try:
            wire.send(b"GET /healthz HTTP/1.1\r\n")
            while time.monotonic() < deadline:
                wire.send(b"X-A: 1\r\n")
                time.sleep(0.1)
            pytest.fail("still open")
        except OSError:
            return


def test_the_second_request_of_a_connection_has_the_same_limits(api: Api) -> None:
    with Wire(api) as wire:
        wire.send(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert wire.socket.recv(65536).startswith(b"HTTP/1.1 200")
        wire.send(b"GET /healthz HTTP/1.1\r\nHos")
        assert status(wire.rest()) == 408


@pytest.mark.parametrize("ended", [True, False])
@pytest.mark.parametrize("many", [True, False])
def test_a_large_head_is_refused(api: Api, ended: bool, many: bool) -> None:
    lines = [f"X-{n}: {'x' * 100}" for n in range(1000)] if many else ["X-Big: " + "x" * 100_000]
    sent = head(api, *lines)
    with Wire(api) as wire:
        wire.send(sent if ended else sent[:-4])
        assert status(wire.rest()) == 431


def test_a_large_url_and_a_large_head_of_a_socket_are_refused(api: Api) -> None:
    upgrade = ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"]
    upgrade += ["Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="]
    for path, lines, expected in (
        ("/" + "a" * 20_000, [], 431),
        ("/ws", [*upgrade, "X-Big: " + "x" * 100_000], 431),
        ("/ws", [*upgrade, "X-Big: " + "x" * 12_000], 400),
    ):
        with Wire(api) as wire:
            wire.send(head(api, *lines, path=path).replace(b"POST", b"GET", 1))
            assert status(wire.rest()) == expected


def test_a_body_that_trickles_is_cut(api: Api, nothing_stored: None) -> None:
    with Wire(api) as wire:
        wire.send(head(api, "Content-Length: 1000"))
        try:
            for byte in EVENT[:-1] + b" " * 200:
                wire.send(bytes([byte]))
                time.sleep(0.1)
            pytest.fail("still open")
        except OSError:
            pass  # cut in the middle of a byte's way; else the answer says why
    with Wire(api) as wire:
        wire.send(head(api, "Content-Length: 1000") + EVENT[:10])
        assert status(wire.rest()) == 408


def test_a_body_after_the_answer_is_not_waited_for(api: Api) -> None:
    with Wire(api) as wire:
        wire.send(b"POST /v1/events HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nabc")
        assert wire.rest().startswith(b"HTTP/1.1 401")


def test_a_large_body_is_refused_however_its_length_is_told(api: Api, nothing_stored: None) -> None:
    with httpx.Client(base_url=api.url, headers=api.bearer("events:publish")) as client:
        big = b" " * (50 * 2**20)
        announced = client.post("/v1/events", content=big)
        chunks = client.post("/v1/events", content=(big[:65536] for _ in range(100)))
        for answer in (announced, chunks):
            assert answer.status_code == 413
            assert answer.headers["content-type"] == "application/problem+json"
        just = EVENT + b" " * (2**20 - len(EVENT) + 1)
        assert client.post("/v1/events", content=just).status_code == 413


@pytest.mark.parametrize("encoding", ["gzip", "br", "deflate", "gzip, gzip", "zstd"])
def test_a_compressed_body_is_refused(api: Api, nothing_stored: None, encoding: str) -> None:
    headers = {**api.bearer("events:publish"), "Content-Encoding": encoding}
    answer = httpx.post(f"{api.url}/v1/events", content=EVENT, headers=headers)
    assert answer.status_code == 415
    assert "Content-Encoding" in answer.json()["detail"]


def test_wrong_paths_and_methods_are_problems_that_help(api: Api) -> None:
    with httpx.Client(base_url=api.url, headers=api.bearer("events:read")) as client:
        absent = client.get("/v1/nothing")
        assert (absent.status_code, absent.json()["status"]) == (404, 404)
        wrong = client.patch("/v1/events")
        assert (wrong.status_code, wrong.headers["allow"]) == (405, "POST")
        for answer in (absent, wrong):
            assert answer.headers["content-type"] == "application/problem+json"
            assert answer.json()["requestId"]
            assert answer.headers["x-correlation-id"]


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "TRACE", "PUT", "PURGE"])
def test_every_method_stands_behind_the_gate(api: Api, method: str) -> None:
    for path in ("/v1/events", "/docs", "/openapi.json", "/metrics", "/asyncapi.json", "/nowhere"):
        answer = httpx.request(method, f"{api.url}{path}")
        expected = {401, 400} if method == "PURGE" else {401}
        assert answer.status_code in expected, path


@pytest.mark.parametrize(
    "sent", [b"\x16\x03\x01\x02\x00\x01", b"GET / HTTP/9.9\r\n\r\n", b"\0" * 99]
)
def test_what_is_not_http_is_refused(api: Api, sent: bytes) -> None:
    with Wire(api) as wire:
        wire.send(sent)
        assert status(wire.rest()) in (400, 408)
