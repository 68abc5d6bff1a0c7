"""How storage grew: what came and went in each bucket of time, and what lay there at its end."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tristore.db.queries import load
from tristore.timestore import window
from tristore.timestore.growth_tail import folder_sql
from tristore.timestore.requests import Query
from tristore.timestore.tables import ACTIVITY, GROWTH, Tables
from tristore.timestore.window import Window

_sql = load("tristore.timestore", "storage.sql")


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder (`''`: the whole mount) of some mounts, None being all; `mount` is the one named."""

    mount: str | None
    mounts: Sequence[str] | None
    prefix: str = ""

    @property
    def depth(self) -> int:
        return len(self.prefix.split("/")) if self.prefix else 0

    def condition(self, number: int) -> str:
        """SQL that holds for rows of its mounts, which are bound to that number."""
        if self.mounts is None:
            return "true"
        if len(self.mounts) == 1:
            return f"mount = ${number}"
        return f"list_contains(${number}::VARCHAR[], mount)"

    def bound(self) -> list[Any]:
        """What `condition` wants bound."""
        if self.mounts is None:
            return []
        return [self.mounts[0] if len(self.mounts) == 1 else list(self.mounts)]


def query(tables: Tables, folder: Folder, asked: Window, format: str) -> Query:
    """From the hourly sums as far as they tell it; what they do not, from single changes."""
    hour = asked.begin - asked.begin % window.HOUR
    if folder.depth > tables.growth_depth:
        sources = [tables.source(ACTIVITY, before=asked.end)]
        changes = folder_sql(ACTIVITY)
    elif asked.hourly:
        sources = [tables.source(GROWTH, before=asked.end)]
        changes = hours(folder)
    else:
        before = tables.source(GROWTH, before=hour)
        sources = [before, tables.source(ACTIVITY, after=hour, before=asked.end)]
        changes = f"{hours(folder)} UNION ALL {folder_sql(ACTIVITY)}"
    return Query(sources, sql(folder, changes), parameters(folder, asked), format)


def hours(folder: Folder) -> str:
    """The changes of a folder as the hourly sums tell them."""
    return str(_sql.hours.format(depth=folder.depth))


def sql(folder: Folder, changes: str) -> str:
    return str(_sql.growth.format(changes=changes, mounts=folder.condition(6)))


def parameters(folder: Folder, asked: Window) -> list[Any]:
    given = [folder.prefix, asked.begin, asked.width, asked.count, folder.mount]
    return [*given, *folder.bound()]


def told(tables: Tables, mount: str) -> Query:
    """Finds a row if anything was ever told of the mount."""
    return Query([tables.source(GROWTH)], _sql.mount_told, [mount])
