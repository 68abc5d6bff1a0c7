"""The publisher for plain code: the async one, on an event loop in a thread of its own."""

import asyncio
import threading
from collections.abc import Coroutine, Iterable, Mapping
from types import TracebackType
from typing import Any, TypeVar, Unpack

from tristore.events.envelope import Event
from tristore.events.payload import Payload
from tristore.events.sdk.delivery import Counters
from tristore.events.sdk.publisher import Fields, Publisher

T = TypeVar("T")


class BlockingPublisher:
    """Takes what Publisher takes; may be used from several threads."""

    def __init__(self, source: str, url: str | None = None, **options: Any) -> None:
        self._publisher = Publisher(source, url, **options)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> "BlockingPublisher":
        self._thread.start()
        try:
            self._run(self._publisher.__aenter__())
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        try:
            self._run(self._publisher.__aexit__(kind, exc, tb))
        finally:
            self._stop()

    @property
    def counters(self) -> Counters:
        return self._publisher.counters

    @property
    def unsent(self) -> int:
        return self._publisher.unsent

    def publish(
        self, type: str, payload: Mapping[str, Any] | Payload, **fields: Unpack[Fields]
    ) -> str:
        return self._run(self._publisher.publish(type, payload, **fields))

    def publish_many(self, events: Iterable[Mapping[str, Any] | Event]) -> list[str]:
        return self._run(self._publisher.publish_many(events))

    def flush(self, timeout: float | None = None) -> None:
        self._run(self._publisher.flush(timeout))

    def _run(self, call: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(call, self._loop).result()

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
