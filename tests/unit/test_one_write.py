"""The head and the body of an answer leave together; nothing waits longer than a turn."""

import asyncio
from asyncio import Transport

import pytest

from tristore.http.one_write import OneWrite

HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n"


class Wire(Transport):
    """What leaves, write by write."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert not self.closed, "written after the end"
        self.written.append(bytes(data))

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed


@pytest.fixture
async def wire() -> Wire:
    return Wire()


@pytest.fixture
async def one(wire: Wire) -> OneWrite:
    return OneWrite(wire, asyncio.get_running_loop())


async def test_a_small_body_goes_with_its_head(one: OneWrite, wire: Wire) -> None:
    one.write(HEAD)
    one.write(b"body")
    one.write(b"more")
    assert wire.written == [HEAD + b"body", b"more"]
    await asyncio.sleep(0)
    assert len(wire.written) == 2


async def test_a_body_may_be_a_view_of_bytes(one: OneWrite, wire: Wire) -> None:
    one.write(HEAD)
    one.write(memoryview(b"body"))
    one.write(memoryview(b"more"))
    assert wire.written == [HEAD + b"body", b"more"]


async def test_a_head_whose_body_takes_its_time_leaves_alone(one: OneWrite, wire: Wire) -> None:
    one.write(HEAD)
    await asyncio.sleep(0)
    assert wire.written == [HEAD]
    one.write(b"body")
    assert wire.written == [HEAD, b"body"]


async def test_a_large_body_is_not_copied(one: OneWrite, wire: Wire) -> None:
    body = bytes(1024 * 1024)
    one.write(HEAD)
    one.write(body)
    assert wire.written == [HEAD, body]


async def test_a_head_leaves_before_the_end(one: OneWrite, wire: Wire) -> None:
    one.write(HEAD)
    one.close()
    assert (wire.written, wire.closed) == ([HEAD], True)


async def test_a_connection_lost_meanwhile_is_not_written_to(one: OneWrite, wire: Wire) -> None:
    one.write(HEAD)
    wire.close()
    await asyncio.sleep(0)
    assert wire.written == []


async def test_answers_that_follow_one_another_keep_their_order(one: OneWrite, wire: Wire) -> None:
    for body in (b"1111", b"2222"):
        one.write(HEAD)
        one.write(body)
    assert b"".join(wire.written) == HEAD + b"1111" + HEAD + b"2222"
