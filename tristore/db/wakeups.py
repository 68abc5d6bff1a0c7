"""NOTIFY as a hint that shortens a sleep; losing one costs a poll, never an event."""

import asyncio
import logging
from collections.abc import Iterable
from types import TracebackType

import psycopg
from psycopg import AsyncConnection, sql

from tristore.cancellation import obedient
from tristore.failpoints import skipped

OUTBOX = "tristore_outbox"
LOG = "tristore_log"
SCHEMAS = "tristore_schemas"

_log = logging.getLogger(__name__)


class Listener:
    """Listens on one connection for one waiter per channel; reconnects by itself."""

    def __init__(self, database_url: str, channels: Iterable[str]) -> None:
        self._database_url = database_url
        self._flags = {channel: asyncio.Event() for channel in channels}
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "Listener":
        self._task = asyncio.create_task(self._run(), name="listener")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def wait(self, channel: str, seconds: float) -> None:
        """Returns at the next wake-up, or after `seconds`."""
        flag = self._flags[channel]
        try:
            await asyncio.wait_for(flag.wait(), seconds)
        except TimeoutError:
            pass
        flag.clear()

    async def _run(self) -> None:
        while True:
            try:
                await obedient(self._listen())
            except (psycopg.Error, OSError) as error:
                _log.debug("listener lost its connection: %s", type(error).__name__)
                await asyncio.sleep(0.5)

    async def _listen(self) -> None:
        async with await AsyncConnection.connect(
            self._database_url, autocommit=True, application_name="tristore-listener"
        ) as conn:
            for channel, flag in self._flags.items():
                await conn.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))
                flag.set()  # what happened before LISTEN took hold
            async for notice in conn.notifies():
                if not skipped("wakeups.notice"):
                    self._flags[notice.channel].set()
