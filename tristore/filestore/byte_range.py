"""One range of bytes of a file, as a `Range` header asks for it."""

import re
from dataclasses import dataclass

_UNIT = "bytes="
_RANGE = re.compile(r"([0-9]{0,19})-([0-9]{0,19})")


class Unsatisfiable(Exception):
    """Nothing of what is asked for lies in the file, or more than one piece is asked for."""


@dataclass(frozen=True, slots=True)
class ByteRange:
    """From `start` up to and without `stop`."""

    start: int
    stop: int

    def content_range(self, size: int) -> str:
        return f"bytes {self.start}-{self.stop - 1}/{size}"


def parse(given: str | None, size: int) -> ByteRange | None:
    """None where the whole file is to be sent: no range, or one that means nothing (RFC 9110)."""
    if given is None or not given.strip().lower().startswith(_UNIT):
        return None
    asked = given.strip()[len(_UNIT) :]
    if "," in asked:
        raise Unsatisfiable
    found = _RANGE.fullmatch(asked.strip())
    if found is None or not (found[1] or found[2]):
        return None
    return _within(found[1], found[2], size)


def _within(first: str, last: str, size: int) -> ByteRange | None:
    if not first:
        start, stop = max(0, size - int(last)), size
    else:
        start, stop = int(first), min(size, int(last) + 1) if last else size
        if last and int(last) < start:
            return None
    if start >= stop:
        raise Unsatisfiable
    return ByteRange(start, stop)
