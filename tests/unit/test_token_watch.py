"""The look at the tokens of open streams ends those that have ended, and no others."""

import asyncio
from collections.abc import Sequence
from typing import Any

from tests.support.waiting import until
from tristore.config import HttpSettings
from tristore.events.live.audience import Reader
from tristore.events.live.live import LiveFeed
from tristore.events.type_filter import TypeFilter


class Tokens:
    """Knows of one that has ended; while it is asked, a reader comes with a new one."""

    def __init__(self) -> None:
        self.looks = 0
        self.late = Reader(TypeFilter([]), 0)
        self.feed: Any = None

    async def alive(self, ids: Sequence[str]) -> set[str]:
        self.looks += 1
        self.feed._open.setdefault("new", set()).add(self.late)
        return set(ids) - {"ended"}


async def test_a_reader_that_comes_during_the_look_stays() -> None:
    tokens, tail, ended = Tokens(), None, Reader(TypeFilter([]), 0)
    tokens.feed = feed = LiveFeed(tail, tokens, HttpSettings(recheck_seconds=0.01))  # type: ignore[arg-type]
    feed._open["ended"] = {ended}
    async with feed:
        await until(lambda: asyncio.sleep(0, tokens.looks > 1))
    assert ended.failure is not None
    assert tokens.late.failure is None
