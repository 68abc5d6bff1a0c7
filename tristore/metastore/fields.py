"""The fields a search may name: which there are, of what kind, and how a path is written."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from tristore.errors import InvalidQuery
from tristore.events import strictjson

METADATA = "metadata"
MAX_KEYS = 32
MAX_CHARACTERS = 500
# A plain key, or any key at all in brackets and JSON's quotes. The signs of path languages
# (wildcards, functions, roots) are no plain keys, so such a path is refused, not misread.
_STEP = re.compile(
    r"""\.(?P<plain>[^\s.,:;*$?@&|!<>=()\[\]{}"'`\\\x00-\x1f]+)
    | \[(?P<quoted>"(?:[^"\\\x00-\x1f]|\\.)*")\]""",
    re.VERBOSE,
)
_GRAMMAR = 'write metadata.name.inner, and a key with other signs as metadata["a.b"]'


class Kind(Enum):
    TEXT = "text"
    NUMBER = "number"
    TIME = "time"
    TAGS = "tags"
    JSON = "json"
    WORDS = "words"


@dataclass(frozen=True, slots=True)
class Field:
    """`path` is below the metadata, for the kind JSON; `column` is that of the table."""

    name: str
    kind: Kind
    column: str = METADATA
    path: tuple[str, ...] = ()
    nullable: bool = False


SYSTEM = {
    field.name: field
    for field in (
        Field("namespace", Kind.TEXT, "namespace"),
        Field("key", Kind.TEXT, "key"),
        Field("owner", Kind.TEXT, "owner", nullable=True),
        Field("version", Kind.NUMBER, "version"),
        Field("tags", Kind.TAGS, "tags"),
        Field("createdAt", Kind.TIME, "created_at"),
        Field("updatedAt", Kind.TIME, "updated_at"),
        Field("createdBy", Kind.TEXT, "created_by"),
        Field("updatedBy", Kind.TEXT, "updated_by"),
        Field("deletedAt", Kind.TIME, "deleted_at", nullable=True),
        Field("text", Kind.WORDS),
    )
}


def parse(given: Any) -> Field:
    """A field by its name, or by the list of its keys: `["metadata", "a.b"]`."""
    if isinstance(given, str) and given in SYSTEM:
        return SYSTEM[given]
    path = metadata_path(given)
    return Field(written(path), Kind.JSON, path=path, nullable=True)


def metadata_path(given: Any) -> tuple[str, ...]:
    """The keys below the metadata that a path names."""
    if isinstance(given, str):
        keys = _keys_of_text(given)
    elif isinstance(given, list) and given and all(isinstance(key, str) for key in given):
        keys = given
    else:
        raise InvalidQuery(f"a field is a name or a list of keys; {_GRAMMAR}")
    if keys[0] != METADATA:
        raise InvalidQuery(f"there is no field {keys[0][:100]!r}; {_known()}")
    return _checked(tuple(keys[1:]))


def written(path: Sequence[str]) -> str:
    """A metadata path as `metadata_path` reads it; one way to write each path."""
    return METADATA + "".join(map(_step, path))


def _step(key: str) -> str:
    dotted = f".{key}"
    if _STEP.fullmatch(dotted):
        return dotted
    escaped = key.replace("\\", "\\\\").replace('"', '\\"')
    return f'["{escaped}"]'


def _keys_of_text(text: str) -> list[str]:
    if len(text) > MAX_CHARACTERS:
        raise InvalidQuery(f"a field has at most {MAX_CHARACTERS} characters")
    if not re.match(r"metadata(?![^.\[])", text):
        raise InvalidQuery(f"there is no field {text[:100]!r}; {_known()}")
    keys, place = [METADATA], len(METADATA)
    while step := _STEP.match(text, place):
        keys.append(step["plain"] or _unquoted(step["quoted"]))
        place = step.end()
    if place != len(text):
        raise InvalidQuery(f"{text[:100]!r} means nothing at column {place + 1}; {_GRAMMAR}")
    return keys


def _unquoted(text: str) -> str:
    try:
        return str(strictjson.loads(text.encode("utf-8", "replace")))
    except strictjson.StrictJsonError as error:
        raise InvalidQuery(f"a key in brackets is a JSON string: {error}") from None


def _checked(path: tuple[str, ...]) -> tuple[str, ...]:
    if len(path) > MAX_KEYS:
        raise InvalidQuery(f"a metadata path has at most {MAX_KEYS} keys")
    if sum(map(len, path)) > MAX_CHARACTERS:
        raise InvalidQuery(f"a field has at most {MAX_CHARACTERS} characters")
    if not all(map(storable, path)):
        raise InvalidQuery("a metadata path holds a character that no key can hold")
    return path


def storable(text: str) -> bool:
    """Whether Postgres can hold it: no NUL, no half of a character."""
    return "\x00" not in text and not any("\ud800" <= c <= "\udfff" for c in text)


def _known() -> str:
    return f"there are {', '.join(SYSTEM)} and metadata.<path>"
