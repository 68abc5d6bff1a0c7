"""The columns of a dataset: their names, types, and whether a row may leave one out."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tristore.errors import InvalidSchema, Violation

# What users may declare; tables of the log have `integer` and `binary` besides.
TYPES = ("timestamp", "string", "double", "long", "boolean", "date")
# Columns that start with an underscore are ours: `_partition`.
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,62}", re.ASCII)
MAX_COLUMNS = 200


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: str
    nullable: bool = True

    @classmethod
    def of(cls, given: dict[str, Any]) -> "Column":
        return cls(given["name"], given["type"], given.get("nullable", True))

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "type": self.type, "nullable": self.nullable}


def named(columns: Iterable[Column]) -> dict[str, Column]:
    """By folded name: neither Spark nor SQL tells `At` from `at`."""
    return {column.name.lower(): column for column in columns}


def check(columns: Sequence[Column], time_column: str) -> tuple[Column, ...]:
    """The columns of a new dataset, its time column never null; refuses with every reason."""
    found = [*_faults(columns), *_time_faults(columns, time_column)]
    if found:
        raise InvalidSchema(found)
    return tuple(Column(c.name, c.type, c.nullable and c.name != time_column) for c in columns)


def name_fault(name: str) -> str | None:
    """Why a column cannot be called so."""
    if _NAME.fullmatch(name):
        return None
    return "a column is called by a letter and up to 62 letters, digits and underscores"


def _faults(columns: Sequence[Column]) -> list[Violation]:
    faults = []
    if len(columns) > MAX_COLUMNS:
        faults.append(Violation("/schema", f"a dataset has at most {MAX_COLUMNS} columns"))
    seen: set[str] = set()
    for index, column in enumerate(columns):
        if fault := name_fault(column.name):
            faults.append(Violation(f"/schema/{index}/name", fault))
        elif column.name.lower() in seen:
            faults.append(
                Violation(f"/schema/{index}/name", f"{column.name} is there twice (in any case)")
            )
        if column.type not in TYPES:
            known = ", ".join(TYPES)
            faults.append(Violation(f"/schema/{index}/type", f"a column's type is one of {known}"))
        seen.add(column.name.lower())
    return faults


def _time_faults(columns: Sequence[Column], time_column: str) -> list[Violation]:
    found = next((column for column in columns if column.name == time_column), None)
    if found is None:
        return [Violation("/timeColumn", f"the schema has no column {time_column}")]
    if found.type != "timestamp":
        return [Violation("/timeColumn", f"{time_column} must have the type timestamp")]
    return []
