"""Where rows wait for the pipeline: Parquet files below `_staging`, durable before they count."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

from tristore.errors import Unavailable
from tristore.timestore.place import Place
from tristore.timestore.spool import refusal

AREA = "_staging"


@dataclass(frozen=True, slots=True)
class Draft:
    """A file that is being written; `name` is its path below the tables' place when published."""

    name: str
    file: IO[bytes]


class Staging:
    def __init__(self, place: Place, data_dir: Path) -> None:
        self._place = place
        # On S3 bodies and drafts wait on the disk of this process.
        self.spool = (place.local or data_dir.absolute()) / AREA

    @asynccontextmanager
    async def draft(self, folder: str) -> AsyncIterator[Draft]:
        """Gone at the end of the block, unless it was published."""
        name = f"{AREA}/{folder}/{uuid4().hex}.parquet"
        path = self._draft_path(name)
        try:
            file = await asyncio.to_thread(_create, path)
        except OSError as error:
            raise refusal(error) from error
        try:
            yield Draft(name, file)
        finally:
            file.close()
            with suppress(FileNotFoundError):
                path.unlink()

    async def publish(self, draft: Draft) -> int:
        """Whole and durable under its name afterwards; returns its size."""
        try:
            if self._place.local is None:
                return await self._upload(draft)
            return await asyncio.to_thread(self._rename, draft)
        except OSError as error:
            raise refusal(error) from error

    async def discard(self, name: str) -> None:
        """Only what no batch names: the caller knows that it was not committed."""
        if self._place.local is not None:
            with suppress(OSError):
                (self._place.local / name).unlink()

    def _draft_path(self, name: str) -> Path:
        path = self.spool.parent / name
        return path.with_name(f".{path.name}")

    def _rename(self, draft: Draft) -> int:
        path = self.spool.parent / draft.name
        size = os.fstat(draft.file.fileno()).st_size
        os.fsync(draft.file.fileno())
        os.rename(self._draft_path(draft.name), path)
        _sync_folder(path.parent)
        return size

    async def _upload(self, draft: Draft) -> int:
        import obstore
        from obstore.exceptions import BaseError
        from obstore.store import S3Store

        given = self._place.options
        keys: Any = {name: value for name, value in given.items() if name.startswith("aws_")}
        client: Any = {name: value for name, value in given.items() if name not in keys}
        draft.file.seek(0)
        try:
            store = S3Store.from_url(self._place.uri, config=keys, client_options=client)
            await obstore.put_async(store, draft.name, draft.file)
        except BaseError as error:
            raise Unavailable("the tables' S3 storage does not answer; try again") from error
        return os.fstat(draft.file.fileno()).st_size


def _create(path: Path) -> IO[bytes]:
    if not path.parent.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        # A folder that is lost takes what is in it along.
        for folder in (path.parent.parent, path.parent.parent.parent):
            _sync_folder(folder)
    return path.open("x+b", buffering=0)


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
