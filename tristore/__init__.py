"""Three stores on one event bus."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tristore.errors import BufferFull as BufferFull
    from tristore.errors import InvalidEvent as InvalidEvent
    from tristore.errors import TristoreError as TristoreError
    from tristore.errors import Unsent as Unsent
    from tristore.events.envelope import Event as Event
    from tristore.events.sdk.blocking import BlockingPublisher as BlockingPublisher
    from tristore.events.sdk.publisher import Publisher as Publisher
    from tristore.events.sdk.subscriber import Subscriber as Subscriber

__version__ = "0.1.0"

# Loaded when first asked for: a program that wants the version loads no client.
_HOMES = {
    "BlockingPublisher": "tristore.events.sdk.blocking",
    "BufferFull": "tristore.errors",
    "Event": "tristore.events.envelope",
    "InvalidEvent": "tristore.errors",
    "Publisher": "tristore.events.sdk.publisher",
    "Subscriber": "tristore.events.sdk.subscriber",
    "TristoreError": "tristore.errors",
    "Unsent": "tristore.errors",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'tristore' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
