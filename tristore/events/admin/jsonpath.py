"""A small path language over payloads: `$.a.b[0] == "x"`, or `$.a.b` for "is there".

A path becomes a list of keys that is bound as a parameter; nothing of it is ever part of a
query's text. Wildcards and functions do not exist, so a path costs one lookup per event.
"""

import re
from dataclasses import dataclass
from typing import Any

from tristore.errors import InvalidQuery
from tristore.events import strictjson

MAX_CHARACTERS = 500
MAX_KEYS = 32
EXISTS = "exists"
_STEP = re.compile(
    r"""\.(?P<name>[A-Za-z_][A-Za-z0-9_-]*)
    | \[(?P<index>0|[1-9][0-9]{0,8})\]
    | \["(?P<double>[^"\\\x00-\x1f]+)"\]
    | \['(?P<single>[^'\\\x00-\x1f]+)'\]""",
    re.VERBOSE,
)
_COMPARISON = re.compile(r"\s*(==|!=|<=|>=|<|>)\s*(.+)", re.DOTALL)
_GRAMMAR = 'write $.name.list[0]["other name"], then optionally one of == != < <= > >= and a value'


@dataclass(frozen=True, slots=True)
class JsonPath:
    """`value` is the compared scalar as JSON text; None when the path only has to exist."""

    keys: tuple[str, ...]
    operator: str = EXISTS
    value: str | None = None

    @classmethod
    def parse(cls, text: str) -> "JsonPath":
        if len(text) > MAX_CHARACTERS or not text.startswith("$"):
            raise InvalidQuery(f"jsonPath starts with $ and is at most {MAX_CHARACTERS} long")
        keys, end = _steps(text)
        rest = text[end:]
        if not keys or len(keys) > MAX_KEYS:
            raise InvalidQuery(f"jsonPath names 1 to {MAX_KEYS} keys: {_GRAMMAR}")
        if not rest.strip():
            return cls(keys)
        found = _COMPARISON.fullmatch(rest)
        if found is None:
            raise InvalidQuery(f"jsonPath is not understood at character {end}: {_GRAMMAR}")
        return cls(keys, found[1], _scalar(found[2]))


def _steps(text: str) -> tuple[tuple[str, ...], int]:
    keys: list[str] = []
    place = 1
    while step := _STEP.match(text, place):
        keys.append(next(part for part in step.groups() if part is not None))
        place = step.end()
    return tuple(keys), place


def _scalar(text: str) -> str:
    try:
        value: Any = strictjson.loads(text.strip().encode("utf-8", "replace"))
    except strictjson.StrictJsonError as error:
        raise InvalidQuery(f"jsonPath compares with a JSON value: {error}") from None
    if isinstance(value, dict | list):
        raise InvalidQuery("jsonPath compares with a string, a number, true, false or null")
    return text.strip()
