"""The event types the platform publishes itself, with the JSON Schema of each version."""

import json
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

_FILE_NAME = re.compile(r"(?P<type>.+)\.v(?P<version>[1-9][0-9]*)\.json")


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    type: str
    version: int
    schema: dict[str, Any]


def entries() -> list[CatalogueEntry]:
    """Every version of every type, in the order of type, then version."""
    return list(_read())


def latest(type: str) -> CatalogueEntry | None:
    return _newest().get(type)


@cache
def _read() -> tuple[CatalogueEntry, ...]:
    found = []
    for file in files("tristore.events").joinpath("schemas").iterdir():
        if name := _FILE_NAME.fullmatch(file.name):
            schema = json.loads(file.read_text("utf-8"))
            found.append(CatalogueEntry(name["type"], int(name["version"]), schema))
    return tuple(sorted(found, key=lambda entry: (entry.type, entry.version)))


@cache
def _newest() -> dict[str, CatalogueEntry]:
    # Sorted by version, so the newest of a type is the one that stays.
    return {entry.type: entry for entry in _read()}
