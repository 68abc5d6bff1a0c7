"""The quick way for JSON that is plainly harmless; everything doubtful takes the strict way.

orjson is ten times as fast as a decoder with hooks, but keeps the last of two equal keys and reads
huge integers as floats (a number beyond all doubles it refuses itself). So texts with anything
unusual in them are left to the strict decoder, and the rest is accepted only if it has exactly as
many keys as key marks: then no key came twice.
"""

import re
from typing import Any

import orjson

# Every digit as 0 and every white space as a space: then fixed texts say what is unusual, and
# finding those is many times as fast as a regular expression.
_PLAIN = bytes.maketrans(b"123456789\t\r\n", b"000000000   ")
_LONG = b"0" * 19
_ESCAPE = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")

UNSURE = object()


def loads(data: bytes, *, max_depth: int, max_keys: int, max_key_chars: int) -> Any:
    """The value, or UNSURE: then nothing is said about the text."""
    if _is_unusual(data):
        return UNSURE
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        return UNSURE
    # A string may hold the mark as well, so there are at least as many marks as keys; and at
    # least as many keys in the text as in the value. Equal means equal all along.
    marks, keys, level = data.count(b'":'), 0, [value]
    for _ in range(max_depth + 1):
        objects = [item for item in level if type(item) is dict]
        arrays = [item for item in level if type(item) is list]
        if not objects and not arrays:
            return value if keys == marks else UNSURE
        keys += sum(map(len, objects))
        if any(len(x) > max_keys or sum(map(len, x)) > max_key_chars for x in objects):
            return UNSURE
        level = [x for item in objects for x in item.values()]
        level += [x for item in arrays for x in item]
    return UNSURE


def _is_unusual(data: bytes) -> bool:
    """Long digit runs, NUL and surrogate escapes, space before a colon."""
    plain = data.translate(_PLAIN)
    return _LONG in plain or b" :" in plain or (b"\\u" in data and _ESCAPE.search(data) is not None)
