"""The chosen fields of a record, in the shape the whole record has."""

from collections.abc import Sequence
from typing import Any

from tristore.errors import InvalidQuery
from tristore.metastore import fields
from tristore.metastore.fields import METADATA, Field, Kind
from tristore.metastore.model import Record

MAX_FIELDS = 100
_ALWAYS = ("namespace", "key")


class Projection:
    """Without any fields the whole record; namespace and key are always there."""

    def __init__(self, chosen: Sequence[Field] = ()) -> None:
        self._paths = [field.path for field in chosen if field.kind is Kind.JSON]
        names = [field.name for field in chosen if field.kind is not Kind.JSON]
        self._names = dict.fromkeys([*_ALWAYS, *names])
        self._whole = not chosen

    def of(self, record: Record) -> dict[str, Any]:
        found = record.to_json()
        if self._whole:
            return found
        shown = {name: found[name] for name in self._names}
        if self._paths:
            shown[METADATA] = self._metadata(record.metadata)
        return shown

    def _metadata(self, metadata: dict[str, Any]) -> dict[str, Any]:
        """Only what is there: a path that is missing leaves nothing behind."""
        shown: dict[str, Any] = {}
        for path in self._paths:
            if not path:
                return metadata
            _copy(metadata, shown, path)
        return shown


def parse(given: Sequence[Any]) -> Projection:
    if len(given) > MAX_FIELDS:
        raise InvalidQuery(f"fields: at most {MAX_FIELDS}")
    return Projection([_field(number, name) for number, name in enumerate(given)])


def _field(number: int, name: Any) -> Field:
    try:
        found = fields.parse(name)
    except InvalidQuery as error:
        raise InvalidQuery(f"fields[{number}]: {error}") from None
    if found.kind is Kind.WORDS:
        raise InvalidQuery(f"fields[{number}]: text is only searched, not shown")
    return found


def _copy(source: dict[str, Any], target: dict[str, Any], path: Sequence[str]) -> None:
    """Objects on the way are made anew: what one path shows, another may add to."""
    *above, last = path
    for key in above:
        inner = source.get(key)
        if not isinstance(inner, dict):
            return
        if target.get(key) is inner:
            return
        source, target = inner, target.setdefault(key, {})
    if last in source:
        target[last] = source[last]
