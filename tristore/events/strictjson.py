"""JSON read once and strictly: what Python, Postgres and JavaScript read differently is refused.

Everything that enters the bus is parsed here and stored from the parsed value, so what was
validated is what is stored.
"""

import json
import re
from typing import Any

MAX_DEPTH = 64
_INT64 = range(-(2**63), 2**63)
_SUSPECT = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")


class StrictJsonError(ValueError):
    """The text is not JSON that every reader understands alike."""


def loads(data: bytes) -> Any:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise StrictJsonError(f"not UTF-8 at byte {error.start}") from None
    try:
        value = _DECODER.decode(text)
    except RecursionError:
        raise StrictJsonError(f"nested deeper than {MAX_DEPTH}") from None
    except json.JSONDecodeError as error:
        raise StrictJsonError(f"not JSON: {error}") from None
    # Counting brackets and searching escapes is a hundred times cheaper than walking the value,
    # and settles nearly every event.
    if text.count("{") + text.count("[") > MAX_DEPTH or _SUSPECT.search(text):
        _walk(value, 1)
    return value


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise StrictJsonError(f"duplicate key {twice[:100]!r}")
    return found


def _integer(text: str) -> int:
    # The length is checked first: int() itself refuses thousands of digits.
    if len(text) > 20 or (value := int(text)) not in _INT64:
        raise StrictJsonError("integer outside int64")
    return value


def _float(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise StrictJsonError("number outside the range of a double")
    return value


def _constant(name: str) -> None:
    raise StrictJsonError(f"{name} is not JSON")


def _walk(value: Any, depth: int) -> None:
    if isinstance(value, str):
        _text(value)
        return
    if not isinstance(value, dict | list):
        return
    if depth > MAX_DEPTH:
        raise StrictJsonError(f"nested deeper than {MAX_DEPTH}")
    if isinstance(value, dict):
        for key in value:
            _text(key)
        value = list(value.values())
    for item in value:
        _walk(item, depth + 1)


def _text(value: str) -> None:
    if "\x00" in value:
        raise StrictJsonError("NUL character in a string")
    if not value.isascii() and any("\ud800" <= char <= "\udfff" for char in value):
        raise StrictJsonError("lone surrogate in a string")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_pairs,
    parse_int=_integer,
    parse_float=_float,
    parse_constant=_constant,
)
