"""Claims: the paths open commands work on; no two of them overlap."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tristore.db.pool import Connection
from tristore.db.queries import load
from tristore.events.payloads import NodeKind
from tristore.filestore import paths

_sql = load("tristore.filestore", "claims.sql")

# exist: tracked, whatever its state; present: and not missing; empty: and nothing lies in it;
# free: not tracked at all; unused: not tracked, or missing.
Must = Literal["exist", "present", "empty", "free", "unused"]


@dataclass(frozen=True, slots=True)
class Want:
    """A path to claim, alone or with all that lies under it, and how it must be found.

    `makes`: the directories above it that are absent will be made, so they are claimed with it.
    """

    mount_id: int
    path: str
    subtree: bool = False
    makes: bool = False
    must: Must | None = None
    version: int | None = None
    kind: NodeKind | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "mount_id": self.mount_id,
            "path": self.path,
            "subtree": self.subtree,
            "must": self.must,
            "version": self.version,
            "kind": self.kind,
        }


def above(path: str) -> list[str]:
    """The directories over a path, the root among them."""
    return ["", *paths.parents(path)] if path else []


async def held(conn: Connection, mount_id: int, found: Iterable[str]) -> set[str]:
    """Those of the paths that an open command works on: no word about them is final."""
    asked = list(found)
    places = [place for path in asked for place in (path, *above(path))]
    given = {"mount_id": mount_id, "paths": list(dict.fromkeys(places))}
    rows = await (await conn.execute(_sql.at, given)).fetchall()
    single = {str(path) for path, subtree in rows if not subtree}
    whole = {str(path) for path, subtree in rows if subtree}
    return {p for p in asked if p in single or p in whole or not whole.isdisjoint(above(p))}


async def holder(conn: Connection, mount_id: int, path: str) -> int | None:
    """The journal entry that works on a path now."""
    given = {"mount_id": mount_id, "path": path, "above": above(path)}
    row = await (await conn.execute(_sql.holder, given)).fetchone()
    return None if row is None else int(str(row[0]))


async def under(conn: Connection, mount_id: int, prefix: str) -> bool:
    """Whether an open command works on a path or on anything under it."""
    given = {"mount_id": mount_id, "path": prefix}
    row = await (await conn.execute(_sql.under, given)).fetchone()
    return row is not None


def over(wanted: Sequence[Want]) -> list[dict[str, Any]]:
    """The directories above the wanted paths, but those that are wanted themselves."""
    makes: dict[tuple[int, str], bool] = {}
    for want in wanted:
        for path in above(want.path):
            place = want.mount_id, path
            makes[place] = want.makes or makes.get(place, False)
    for want in wanted:
        makes.pop((want.mount_id, want.path), None)
    return [
        {"mount_id": mount_id, "path": path, "makes": made}
        for (mount_id, path), made in makes.items()
    ]
