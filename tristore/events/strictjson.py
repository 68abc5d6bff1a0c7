"""JSON read once and strictly: what Python, Postgres and JavaScript read differently is refused.

Everything that enters the bus is parsed here and stored from the parsed value, so what was
validated is what is stored.
"""

import json
import re
from typing import Any

from tristore.events import quickjson

# A payload may nest 64 deep; its envelope is one level more.
MAX_DEPTH = 65
# One object's names: their number, and their length together.
MAX_KEYS = 10_000
MAX_KEY_CHARS = 100_000
_INT64 = range(-(2**63), 2**63)
_SUSPECT = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")


class StrictJsonError(ValueError):
    """The text is not JSON that every reader understands alike."""


def loads(data: bytes, *, wrapped: int = 0) -> Any:
    """The value, if an event could be; `wrapped` counts the levels around the events in it."""
    depth = MAX_DEPTH + wrapped
    quick = quickjson.loads(data, max_depth=depth, max_keys=MAX_KEYS, max_key_chars=MAX_KEY_CHARS)
    return _loads(data, depth) if quick is quickjson.UNSURE else quick


def _loads(data: bytes, depth: int) -> Any:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise StrictJsonError(f"not UTF-8 at byte {error.start}") from None
    try:
        value = _DECODER.decode(text)
    except RecursionError:
        raise StrictJsonError(f"nested deeper than {depth}") from None
    except json.JSONDecodeError as error:
        raise StrictJsonError(f"not JSON: {error}") from None
    # Counting brackets and searching escapes is far cheaper than walking the value, and settles
    # nearly every event.
    if text.count("{") + text.count("[") > depth:
        _check_depth(value, depth)
    if _SUSPECT.search(text):
        _check_texts(value)
    return value


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(pairs) > MAX_KEYS:
        raise StrictJsonError(f"more than {MAX_KEYS} keys in one object")
    found = dict(pairs)
    if len("".join(found)) > MAX_KEY_CHARS:
        raise StrictJsonError(f"the keys of one object are longer than {MAX_KEY_CHARS}")
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


def _check_depth(value: Any, limit: int) -> None:
    """Level by level: a few list operations a level instead of a call per value."""
    level = [value]
    for _ in range(limit + 1):
        level = [item for item in level if type(item) is dict or type(item) is list]
        if not level:
            return
        level = [x for item in level for x in (item.values() if type(item) is dict else item)]
    raise StrictJsonError(f"nested deeper than {limit}")


def _check_texts(value: Any) -> None:
    if isinstance(value, str):
        _text(value)
    elif isinstance(value, dict):
        for key, item in value.items():
            _text(key)
            _check_texts(item)
    elif isinstance(value, list):
        for item in value:
            _check_texts(item)


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
