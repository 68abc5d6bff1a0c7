"""A connection that closes while something is written to it is an outage of Redis, no defect."""

import asyncio

import pytest
import uvloop
from redis.exceptions import ConnectionError as RedisAway

from tristore.events.queue import connect


def test_a_write_into_a_closed_connection_says_that_redis_is_away(redis_url: str) -> None:
    """The workers run on uvloop, whose own answer is a RuntimeError that nothing retries."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_write_after_close(redis_url))


async def _write_after_close(redis_url: str) -> None:
    async with connect(redis_url, timeout=60) as redis:
        connection = await redis.connection_pool.get_connection()
        connection._writer.transport.abort()
        with pytest.raises(RedisAway):
            await connection.send_command("PING")
        await connection.send_command("PING")
        assert await connection.read_response() == "PONG"
        await redis.connection_pool.release(connection)
