"""The SDK's subscriber: a durable position in the log that survives every outage."""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, TypeVar

from tristore.config import Settings
from tristore.db.pool import Connection
from tristore.errors import InvalidRequest, StartRefused, Transient
from tristore.events.cursors import From, Page, check_name
from tristore.events.log import Stored
from tristore.events.sdk.retry import Backoff
from tristore.events.type_filter import TypeFilter

if TYPE_CHECKING:
    from tristore.events.sdk.subscriber_database import DatabaseFeed

T = TypeVar("T")

_log = logging.getLogger(__name__)
_WAIT_SECONDS = 20.0
# The position is saved after every batch and at least this often: what is handled again after a
# crash is no more than that.
_SAVE_SECONDS = 1.0


class Feed(Protocol):
    """Where a subscriber's pages come from. Every call may raise a Transient error, after which
    it is made again; `ack` moves the durable position forward and never back."""

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def next(self, limit: int, wait: float) -> Page: ...

    async def ack(self, sequence: int) -> None: ...

    async def forget(self) -> None: ...


class Subscriber:
    """`async for event in subscriber`: an event counts as handled when the next one is asked for.

    Found by `http=` (with `token=`) or by `url=` of the database, else by the settings. A name
    that is new starts at the beginning of what is kept, or with `from_="now"` at the end.
    """

    def __init__(
        self,
        name: str,
        types: Sequence[str] = (),
        url: str | None = None,
        *,
        http: str | None = None,
        token: str | None = None,
        from_: From = "beginning",
        batch: int = 100,
        settings: Settings | None = None,
    ) -> None:
        settings = settings or Settings()
        self.name = check_name(name)
        wanted = TypeFilter(types).patterns
        address = http or url or settings.database_url or settings.url or ""
        self._make_feed = partial(_feed, address, token or settings.token, name, wanted, from_)
        self._batch = batch
        self._backoff = Backoff(settings.publisher)
        self._feed: Feed | None = None
        self._start_over()

    def _start_over(self) -> None:
        self._waiting: deque[Stored] = deque()
        self._current: Stored | None = None
        self._through = self._handled = self._saved = 0
        self._saved_at = 0.0

    async def __aenter__(self) -> "Subscriber":
        await self._opened()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Saves the position. The event last given out counts as handled only if acknowledged."""
        if (feed := self._feed) is None:
            return
        try:
            if self._handled > self._saved:
                await feed.ack(self._handled)
        except Transient as error:
            _log.warning(
                "position not saved, some events will come again", extra=self._extra(error)
            )
        finally:
            self._feed = None
            self._start_over()
            await feed.close()

    def __aiter__(self) -> "Subscriber":
        return self

    async def __anext__(self) -> Stored:
        if self._current is not None:
            self._handled = max(self._handled, self._current.ingress_sequence)
            self._current = None
        await self._peek()
        if self._due():
            await self._save()
        self._current = self._waiting.popleft()
        return self._current

    async def ack(self, event: Stored) -> None:
        """Everything up to this event is handled, and that is durable when this returns."""
        self._handled = max(self._handled, event.ingress_sequence)
        if event is self._current:
            self._current = None
        await self._save()

    async def forget(self) -> None:
        """Drops the position: the next event is the one a new subscriber would get."""
        feed = await self._opened()
        self._start_over()
        await feed.forget()

    @asynccontextmanager
    async def handling(self) -> AsyncIterator[tuple[Stored, Connection]]:
        """The next event and a transaction: effect and position commit together or not at all,
        so the effect happens exactly once, also with several readers of this name."""
        from tristore.events.sdk.subscriber_database import DatabaseFeed

        feed = await self._opened()
        if not isinstance(feed, DatabaseFeed):
            raise InvalidRequest("handling() needs the database: give url=postgresql://…")
        fresh = False
        while not fresh:
            event = await self._peek()
            async with AsyncExitStack() as stack:
                conn = await self._insist(partial(_enter, stack, feed, event.ingress_sequence))
                if fresh := conn is not None:
                    yield event, conn
            self._waiting.popleft()
            self._handled = self._saved = event.ingress_sequence

    async def _opened(self) -> Feed:
        if self._feed is None:
            feed: Feed = self._make_feed()
            await feed.open()
            self._feed = feed
        return self._feed

    async def _peek(self) -> Stored:
        """The next event, left where it is; waits for one, through any outage."""
        feed = await self._opened()
        read = False
        while not self._waiting:
            self._handled = max(self._handled, self._through)
            if self._due() or not read:
                await self._save()
            page = await self._insist(lambda: feed.next(self._batch, _WAIT_SECONDS))
            self._waiting.extend(page.events)
            self._through, read = page.through, True
        return self._waiting[0]

    def _due(self) -> bool:
        return asyncio.get_running_loop().time() >= self._saved_at + _SAVE_SECONDS

    async def _save(self) -> None:
        feed, handled = await self._opened(), self._handled
        if handled <= self._saved:
            return
        await self._insist(lambda: feed.ack(handled))
        self._saved, self._saved_at = handled, asyncio.get_running_loop().time()

    async def _insist(self, call: Callable[[], Awaitable[T]]) -> T:
        """Tries until it succeeds; says once that an outage has begun, and once that it is over."""
        while True:
            try:
                answer = await call()
            except Transient as error:
                if not self._backoff.failures:
                    _log.warning("subscriber cut off, trying on", extra=self._extra(error))
                await asyncio.sleep(self._backoff.failed())
                continue
            if self._backoff.failures:
                _log.warning("subscriber back", extra={"subscriber": self.name})
            self._backoff.succeeded()
            return answer

    def _extra(self, error: Exception) -> dict[str, object]:
        return {"subscriber": self.name, "error": str(error)}


async def _enter(stack: AsyncExitStack, feed: "DatabaseFeed", sequence: int) -> Connection | None:
    return await stack.enter_async_context(feed.handling(sequence))


def _feed(address: str, token: str | None, name: str, types: tuple[str, ...], from_: From) -> Feed:
    # Imported late: a program that reads over HTTP needs no database driver, and the reverse.
    if address.startswith(("http://", "https://")):
        from tristore.events.sdk.subscriber_http import HttpFeed

        return HttpFeed(address, token, name, types, from_)
    if address.startswith(("postgresql://", "postgres://")):
        from tristore.events.sdk.subscriber_database import DatabaseFeed

        return DatabaseFeed(address, name, types, from_)
    raise StartRefused(
        "no log to read: set TRISTORE_DATABASE_URL or TRISTORE_URL, "
        "or give url=postgresql://… or http=http://… with token=…"
    )
