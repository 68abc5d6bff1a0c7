"""Whether the tables' folder is the one this database knows, or only the place of its disk."""

import asyncio
import os
import uuid
from pathlib import Path
from typing import Any

import psycopg

from tristore.db.pool import Pool
from tristore.db.queries import load
from tristore.errors import Unavailable
from tristore.timestore.place import Place
from tristore.timestore.spool import refusal

_sql = load("tristore.timestore", "root.sql")

# Its content is a name that the database made up; a bucket has none, it cannot be unmounted.
MARKER = "tristore-root"


class Root:
    """Of a process that writes again and again: the database is asked once."""

    def __init__(self, place: Place, pool: Pool) -> None:
        self._folder = place.local
        self._pool = pool
        self._name: str | None = None

    async def check(self) -> None:
        if self._folder is None:
            return
        if self._name is None:
            self._name = await self._met(self._folder)
        else:
            await asyncio.to_thread(_meet, self._folder, self._name, founded=True)

    async def _met(self, folder: Path) -> str:
        async with self._pool.connection() as conn:
            row = await (await conn.execute(_sql.known)).fetchone()
            name, founded = _known(row)
            await asyncio.to_thread(_meet, folder, name, founded=founded)
            await conn.execute(_sql.found)
        return name


def check(database_url: str, place: Place) -> None:
    """Before anything is written: a new platform founds its root, any other must find it."""
    if place.local is None:
        return
    with psycopg.connect(database_url) as conn:
        name, founded = _known(conn.execute(_sql.known).fetchone())
        _meet(place.local, name, founded=founded)
        if not founded:
            conn.execute(_sql.found)


def _known(row: Any) -> tuple[str, bool]:
    if row is None:
        raise Unavailable("the tables' root has no row in the database; run `tristore migrate`")
    return str(row[0]), bool(row[1])


def _meet(folder: Path, name: str, *, founded: bool) -> None:
    try:
        found = _read(folder / MARKER)
        if found is None and not founded:
            return _write(folder, name)
    except OSError as error:
        raise refusal(error) from error
    if found is None:
        raise Unavailable(
            f"the tables' folder has no file {MARKER}: is its disk mounted? If it is, and the "
            f"tables in it are the right ones, write {name} into that file"
        )
    if found != name:
        raise Unavailable(
            f"by its file {MARKER} the tables' folder belongs to another database: set "
            "TRISTORE_TIMESTORE__ROOT to the right one, or, if the tables in it are those of this "
            f"database, write {name} into that file"
        )


def _read(file: Path) -> str | None:
    try:
        return file.read_text("utf-8", errors="replace").strip()
    except (FileNotFoundError, NotADirectoryError):
        return None


def _write(folder: Path, name: str) -> None:
    """Whole or not at all, and before the database knows: it may be killed in between."""
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f".{MARKER}.{uuid.uuid4().hex}"
    with draft.open("w", encoding="utf-8") as out:
        out.write(f"{name}\n")
        out.flush()
        os.fsync(out.fileno())
    draft.rename(folder / MARKER)
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
