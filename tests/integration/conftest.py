"""Relay and ingress as tasks of the test, on real servers."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import pytest

from tristore.config import INLINE, Settings
from tristore.wiring import open_ingress, open_relay, open_sync


@pytest.fixture
async def start_part() -> AsyncIterator[Callable[..., Awaitable[asyncio.Task[None]]]]:
    """Starts a part; it is cancelled and closed when the test ends."""
    async with AsyncExitStack() as stack:

        async def start(opening: Callable[..., object], settings: Settings) -> asyncio.Task[None]:
            worker = await stack.enter_async_context(opening(settings))  # type: ignore[arg-type]
            task: asyncio.Task[None] = asyncio.create_task(worker.run())  # type: ignore[attr-defined]
            stack.push_async_callback(_end, task)
            return task

        yield start


@pytest.fixture
async def bus(start_part: Callable[..., Awaitable[object]], settings: Settings) -> Settings:
    """A running relay and ingress."""
    await start_part(open_relay, settings)
    await start_part(open_ingress, settings)
    return settings


@pytest.fixture(params=[INLINE, "redis"])
async def synced_platform(
    request: pytest.FixtureRequest, settings: Settings, start_part: Callable[..., Awaitable[object]]
) -> Settings:
    """The whole way of a file's event, outbox to record: once without Redis, once with it."""
    if request.param == INLINE:
        settings = settings.model_copy(update={"redis_url": INLINE})
    else:
        await start_part(open_ingress, settings)
    await start_part(open_relay, settings)
    await start_part(open_sync, settings)
    return settings


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
