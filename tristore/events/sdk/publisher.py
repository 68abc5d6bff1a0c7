"""The SDK's publisher: events checked here, sent in few jobs, kept while the bus is away."""

import asyncio
import logging
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import partial
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, TypedDict, TypeVar, Unpack

from tristore.config import Settings
from tristore.errors import InvalidEvent, StartRefused, Unsent, Violation
from tristore.events.envelope import Event
from tristore.events.payload import Payload
from tristore.events.registry.registry import Registry
from tristore.events.sdk.delivery import Counters, Delivery, Door
from tristore.events.sdk.draft import Draft
from tristore.events.sdk.quick_draft import quick_drafts
from tristore.observe import correlation_id

T = TypeVar("T")

_log = logging.getLogger(__name__)
# Checking many events takes a while; other tasks get a turn after so many.
_CHECKED_AT_ONCE = 200


class Fields(TypedDict, total=False):
    """What an event may carry beside its type and payload; `ttl` is in milliseconds."""

    correlation_id: str | None
    ttl: int | None
    metadata: Mapping[str, Any] | None
    id: str | None
    occurred_at: datetime | str | None


class Publisher:
    """Use it with `async with`; leaving the block sends what is unsent, or raises.

    The bus is found by `http=` (with `token=`), by `url=` (of Redis, or of the database for the
    outbox), else by the settings. `buffer` names a file that keeps events during an outage.
    """

    def __init__(
        self,
        source: str,
        url: str | None = None,
        *,
        http: str | None = None,
        token: str | None = None,
        buffer: Path | str | None = None,
        settings: Settings | None = None,
    ) -> None:
        settings = settings or Settings()
        options = settings.publisher
        if buffer is not None:
            options = options.model_copy(update={"buffer_path": Path(buffer)})
        self.source = source
        self._options = options
        self._open_door = partial(_door, settings, url, http, token)
        self._registry = Registry.of_catalogue()
        self._delivery: Delivery | None = None

    async def __aenter__(self) -> "Publisher":
        self._delivery = Delivery(self._open_door(), self._options, self.source)
        try:
            await self._delivery.start()
        except BaseException:
            await self._delivery.close()
            self._delivery = None
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        try:
            await self.flush()
        except Unsent as unsent:
            _log.error("publisher closed with unsent events", extra={"unsent": unsent.count})
            if exc is None:
                raise
            exc.add_note(str(unsent))
        finally:
            await self._opened.close()

    @property
    def counters(self) -> Counters:
        return self._opened.counters

    @property
    def unsent(self) -> int:
        """Events taken in and not yet on the bus."""
        return self._opened.unsent

    async def publish(
        self, type: str, payload: Mapping[str, Any] | Payload, **fields: Unpack[Fields]
    ) -> str:
        """The event's id, once it is on the bus or, while that is away, in the buffer."""
        (draft,) = self._drafts([{"type": type, "payload": payload, **fields}])
        if isinstance(draft, InvalidEvent):
            raise draft
        await self._opened.put([draft.body])
        return draft.id

    async def publish_many(self, events: Iterable[Mapping[str, Any] | Event]) -> list[str]:
        """The same for many, in few jobs. None is sent if one of them is invalid."""
        outcomes: list[Draft | InvalidEvent] = []
        for some in _grouped(events):
            outcomes += self._drafts(some)
            await asyncio.sleep(0)
        violations = [
            Violation(f"/{index}{violation.path}", violation.message)
            for index, refusal in enumerate(outcomes)
            if isinstance(refusal, InvalidEvent)
            for violation in refusal.violations
        ]
        if violations:
            raise InvalidEvent("invalid", violations)
        drafts = [draft for draft in outcomes if isinstance(draft, Draft)]
        await self._opened.put([draft.body for draft in drafts])
        return [draft.id for draft in drafts]

    async def flush(self, timeout: float | None = None) -> None:
        """Waits until all is sent; raises Unsent, which says how many are not."""
        seconds = self._options.close_seconds if timeout is None else timeout
        await self._opened.flush(seconds)

    def _draft(self, given: Mapping[str, Any]) -> Draft:
        return Draft.of({**self._defaults(), **given}, self._registry)

    def _drafts(self, events: list[Mapping[str, Any] | Event]) -> Iterator[Draft | InvalidEvent]:
        given = [event.to_json() if isinstance(event, Event) else event for event in events]
        quick = quick_drafts(given, self._defaults(), self._registry)
        for fields, draft in zip(given, quick, strict=True):
            try:
                yield draft or self._draft(fields)
            except InvalidEvent as refusal:
                yield refusal

    def _defaults(self) -> dict[str, str]:
        found = correlation_id.get()
        return {"source": self.source} | ({"correlationId": found} if found else {})

    @property
    def _opened(self) -> Delivery:
        if self._delivery is None:
            raise StartRefused("the publisher is not open; use it with `async with`")
        return self._delivery


def _grouped(events: Iterable[T]) -> Iterator[list[T]]:
    rest = iter(events)
    while some := list(islice(rest, _CHECKED_AT_ONCE)):
        yield some


def _door(settings: Settings, url: str | None, http: str | None, token: str | None) -> Door:
    # Imported late: a program that speaks to one of them loads no client of the others.
    address = http or url or settings.redis_url or settings.url or ""
    if address == "inline":
        address = settings.database_url or ""
    if address.startswith(("http://", "https://")):
        from tristore.events.sdk.publisher_http import HttpDoor

        return HttpDoor(address, token or settings.token)
    if address.startswith(("postgresql://", "postgres://")):
        from tristore.events.sdk.publisher_outbox import OutboxDoor

        return OutboxDoor(address)
    if address.startswith(("redis://", "rediss://", "unix://")):
        from tristore.events.sdk.publisher_queue import QueueDoor

        return QueueDoor(address, settings.events.queue)
    raise StartRefused(
        "no bus to publish to: set TRISTORE_URL and TRISTORE_TOKEN, or TRISTORE_REDIS_URL "
        "(or `inline` and TRISTORE_DATABASE_URL), or give url=redis://…, url=postgresql://… or "
        "http=http://… with token=…"
    )
