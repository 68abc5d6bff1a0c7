"""NOTIFY as a hint that shortens a sleep; losing one costs a poll, never an event."""

import asyncio
import logging
from collections.abc import Callable, Iterable

import psycopg
from psycopg import AsyncConnection, sql

from tristore.background import Background
from tristore.cancellation import obedient
from tristore.failpoints import skipped

OUTBOX = "tristore_outbox"
LOG = "tristore_log"
SCHEMAS = "tristore_schemas"

_log = logging.getLogger(__name__)


class Listener(Background):
    """Listens on one connection for one waiter per channel; reconnects by itself."""

    def __init__(self, database_url: str, channels: Iterable[str]) -> None:
        self._database_url = database_url
        self._flags = {channel: asyncio.Event() for channel in channels}
        self._readers: dict[str, Callable[[str], bool]] = {}

    def read(self, channel: str, reader: Callable[[str], bool]) -> None:
        """Notices of this channel are shown to `reader` first; one it takes wakes nobody."""
        self._readers[channel] = reader

    async def wait(self, channel: str, seconds: float) -> None:
        """Returns at the next wake-up, or after `seconds`."""
        flag = self._flags[channel]
        try:
            await asyncio.wait_for(flag.wait(), seconds)
        except TimeoutError:
            pass
        flag.clear()

    async def _work(self) -> None:
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
                reader = self._readers.get(notice.channel)
                if not skipped("wakeups.notice") and not (reader and reader(notice.payload)):
                    self._flags[notice.channel].set()
