"""What the log says of a request, and what it never says (S6, S50)."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.support.api import Api
from tests.support.parts import environment, free_port
from tests.support.waiting import wait_until
from tests.support.warm import Program, Streams
from tristore.config import Settings


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "api.log"


@pytest.fixture
def api(settings: Settings, log: Path) -> Iterator[Api]:
    settings = settings.model_copy(update={"port": free_port()})
    process = Program(["tristore", "serve"], environment(settings), Streams(stderr=log))
    api = Api(settings, process.pid)
    try:
        wait_until(lambda: _ready(api))
        yield api
    finally:
        process.terminate()
        process.wait(60)


def _ready(api: Api) -> bool:
    try:
        return httpx.get(f"{api.url}/readyz").status_code == 200
    except httpx.TransportError:
        return False


def lines(log: Path, **wanted: Any) -> list[dict[str, Any]]:
    """Every line is one JSON object; those that hold all of `wanted`."""
    found = [json.loads(line) for line in log.read_text().splitlines()]
    return [line for line in found if wanted.items() <= line.items()]


def test_a_request_leaves_one_line_that_can_be_found_again(api: Api, log: Path) -> None:
    headers = {**api.bearer("events:read"), "X-Correlation-Id": "run-7"}
    answer = httpx.get(f"{api.url}/admin/dead-letters/12345", headers=headers)
    (line,) = wait_until(lambda: lines(log, message="request", correlationId="run-7"))
    assert line["requestId"] == answer.json()["requestId"]
    assert line["route"] == "/admin/dead-letters/{letter_id}"
    assert (line["method"], line["status"], line["principal"]) == ("GET", 404, "test")
    assert line["ms"] > 0
    assert line["level"] == "info"


def test_secrets_and_bodies_are_never_logged(api: Api, log: Path) -> None:
    token = api.bearer("events:read", "events:publish")["Authorization"].split()[1]
    headers = {"Authorization": f"Bearer {token}"}
    secrets = [token, "body-secret", "query-secret"]
    with httpx.Client(base_url=api.url) as client:
        client.post("/v1/session", headers=headers)
        secrets.append(client.cookies["tristore_session"])
        ticket = client.post("/v1/tickets", headers=headers).json()["ticket"]
        secrets.append(ticket)
        with connect(f"{api.ws}/ws?ticket={ticket}") as socket:
            socket.recv()
        with pytest.raises(InvalidStatus):
            connect(f"{api.ws}/ws?ticket={ticket}")
        client.get(f"/openapi.json?token={token}&q=query-secret")
        bad = {"type": "bad", "source": "s", "payload": {"password": "body-secret"}}
        client.post("/v1/events", json=bad, headers=headers)
        client.post("/v1/events", content=b'{"body-secret', headers=headers)
        client.get("/last", headers={**headers, "X-Correlation-Id": "the-last"})
    wait_until(lambda: lines(log, correlationId="the-last"))
    written = log.read_text()
    for secret in secrets:
        assert secret not in written
    assert len(lines(log, route="/ws")) >= 1  # the sockets are there, without their tickets


def test_a_value_cannot_forge_a_line(api: Api, log: Path) -> None:
    forged = '\n{"level":"error","message":"forged"}\x1b[31m'
    headers = api.bearer("events:publish")
    bad = {"type": forged, "source": forged, "payload": {}, "id": forged}
    answer = httpx.post(f"{api.url}/v1/events", json=bad, headers=headers)
    assert answer.status_code == 422
    httpx.get(f"{api.url}/%0a%1b[31mforged", headers={**headers, "X-Correlation-Id": "the-last"})
    wait_until(lambda: lines(log, correlationId="the-last"))
    assert lines(log, message="forged") == []
    assert "\x1b" not in log.read_text()
