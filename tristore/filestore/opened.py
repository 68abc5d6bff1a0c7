"""The mounts a process works with: their rows, remembered for a moment, and their open content."""

import asyncio
import time

from tristore.config import Settings
from tristore.db.pool import Pool
from tristore.errors import NotFound, ReadOnly
from tristore.filestore import mounts
from tristore.filestore.blobs import open_blobs
from tristore.filestore.content import Blobs
from tristore.filestore.model import OBSERVE, Caller, Mount

# Mounts are made, never changed in kind or place; what may be stale is a degraded mark.
_REMEMBER_SECONDS = 5.0


class Opened:
    def __init__(self, settings: Settings, pool: Pool) -> None:
        self._settings = settings
        self._pool = pool
        self._by_name: dict[str, Mount] = {}
        self._by_id: dict[int, Mount] = {}
        self._read_at = float("-inf")
        self._blobs: dict[int, Blobs] = {}
        self._opening = asyncio.Lock()
        self.names: dict[int, str] = {}

    async def mount(self, caller: Caller, name: str) -> Mount:
        """One that the caller may not see is absent in every way."""
        if caller.sees(mounts.check_name(name)) and (found := await self._find(name)):
            return found
        raise NotFound(f"there is no mount called {name}")

    async def writable(self, caller: Caller, name: str) -> Mount:
        found = await self.mount(caller, name)
        if found.access == OBSERVE:
            raise ReadOnly(f"{name} is only observed; change its files where they are written")
        return found

    async def by_id(self, mount_id: int) -> Mount:
        if mount_id not in self._by_id:
            await self.refresh()
        return self._by_id[mount_id]

    async def _find(self, name: str) -> Mount | None:
        if name not in self._by_name or time.monotonic() - self._read_at > _REMEMBER_SECONDS:
            await self.refresh()
        return self._by_name.get(name)

    async def refresh(self) -> list[Mount]:
        async with self._pool.connection() as conn:
            found = await mounts.every(conn)
        self._by_name = {mount.name: mount for mount in found}
        self._by_id = {mount.id: mount for mount in found}
        self.names = {mount.id: mount.name for mount in found}
        self._read_at = time.monotonic()
        return found

    async def blobs(self, mount: Mount) -> Blobs:
        if (found := self._blobs.get(mount.id)) is not None:
            return found
        async with self._opening:
            if mount.id not in self._blobs:
                self._blobs[mount.id] = await open_blobs(mount, self._settings)
        return self._blobs[mount.id]

    async def aclose(self) -> None:
        for blobs in self._blobs.values():
            await blobs.aclose()
        self._blobs.clear()
