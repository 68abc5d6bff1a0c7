"""Where rows sent as JSON hold a value that strict JSON refuses: the text alone does not say."""

import json
import math
from typing import Any

from tristore.events import strictjson


def find(data: bytes) -> tuple[int, str, str] | None:
    """Row, column and reason of the first; None where the text, and not a value, is at fault."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if isinstance(found, dict) and "rows" in found:
        found = found["rows"]
    for number, row in enumerate(found if isinstance(found, list) else [found]):
        for name, value in row.items() if isinstance(row, dict) else ():
            if not _plain(value) and (why := _refusal(value)):
                return number, name, why
    return None


def _plain(value: Any) -> bool:
    """Certainly right, which nearly all are."""
    if isinstance(value, str):
        return value.isascii() and "\x00" not in value
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or (isinstance(value, int) and abs(value) < 2**63)


def _refusal(value: Any) -> str | None:
    try:
        strictjson.loads(json.dumps(value).encode())
    except strictjson.StrictJsonError as error:
        return str(error)
    return None
