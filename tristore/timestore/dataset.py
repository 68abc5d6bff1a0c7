"""A dataset as the catalogue knows it."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from tristore.timestore.retention import Retention
from tristore.timestore.schemas import Column

# Usable as a name in SQL, unquoted.
SLUG = re.compile(r"[a-z][a-z0-9_]{0,62}")
Kind = Literal["log", "ingest"]
Granularity = Literal["hour", "day", "month"]
_PARTITION = {"day": "day", "month": "month"}


@dataclass(frozen=True, slots=True)
class Dataset:
    """`folder`: where its table lies below the tables' place; one made anew has another."""

    slug: str
    kind: Kind
    time_column: str
    granularity: Granularity
    columns: tuple[Column, ...]
    retention: Retention
    lateness_seconds: int
    read_scope: str
    write_scope: str
    status: Literal["active", "deleted"]
    folder: str
    version: int
    created_at: datetime
    created_by: str
    updated_at: datetime
    updated_by: str

    @classmethod
    def of(cls, row: dict[str, Any]) -> "Dataset":
        columns = tuple(map(Column.of, row.pop("schema")))
        return cls(columns=columns, retention=Retention.of(row.pop("retention")), **row)

    @property
    def active(self) -> bool:
        return self.status == "active"

    @property
    def partition_column(self) -> str:
        return "_partition" if self.kind == "ingest" else _PARTITION[self.granularity]

    @property
    def etag(self) -> str:
        return f'"{self.version}"'

    def to_json(self) -> dict[str, Any]:
        return {
            "slug": self.slug,
            "kind": self.kind,
            "timeColumn": self.time_column,
            "granularity": self.granularity,
            "schema": [column.to_json() for column in self.columns],
            "retention": self.retention.to_json(),
            "latenessSeconds": self.lateness_seconds,
            "readScope": self.read_scope,
            "writeScope": self.write_scope,
            "status": self.status,
            "version": self.version,
            "createdAt": _time(self.created_at),
            "createdBy": self.created_by,
            "updatedAt": _time(self.updated_at),
            "updatedBy": self.updated_by,
        }


def _time(value: datetime) -> str:
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
