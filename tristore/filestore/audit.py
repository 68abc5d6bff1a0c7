"""The audit: every path of a mount compared with its node; what really differs becomes drift."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field

from tristore.db.pool import Pool
from tristore.events.payloads import ReconcileReason
from tristore.filestore import drifts, known, paths
from tristore.filestore.content import Blobs
from tristore.filestore.differences import Difference, confirm, topmost
from tristore.filestore.drifts import Detection
from tristore.filestore.model import Mount
from tristore.filestore.progress import Progress
from tristore.filestore.walk import Comparison, Stretch

SOURCE = "filestore.reconcile"
_SOME = 1000
_LOOK_AGAIN_SECONDS = 0.2
_PATIENT_LOOKS = 5
_LOOKS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Auditing:
    pool: Pool
    blobs: Blobs
    mount: Mount
    cause: ReconcileReason
    correlation_id: str | None


@dataclass(slots=True)
class Audit:
    about: Auditing
    progress: Progress
    # Untracked directories: what lies in them is settled with them.
    _new: set[str] = field(default_factory=set)
    _busy: set[str] = field(default_factory=set)

    async def run(self, prefix: str) -> None:
        if prefix:
            await self._examine([prefix], 0)
        about = self.about
        comparison = Comparison(about.pool, about.blobs, about.mount, prefix)
        async for stretch in comparison.stretches():
            self.progress.scan(stretch)
            if suspects := self._suspects(stretch):
                await self._examine(suspects, _LOOK_AGAIN_SECONDS)
            if stretch.unreadable:
                await self._record(await self._hidden(stretch.unreadable))
            await self.progress.show()
        await self._look_again()

    def _suspects(self, stretch: Stretch) -> list[str]:
        found = []
        for entry, node in stretch.differing:
            one = entry or node
            assert one is not None
            if node is None and self._in_new(one.path):
                continue
            if node is None and one.kind == "directory":
                self._new.add(one.path)
            found.append(one.path)
        return found

    def _in_new(self, path: str) -> bool:
        return bool(self._new) and any(above in self._new for above in paths.parents(path))

    async def _examine(self, suspects: Iterable[str], quiet_seconds: float) -> None:
        about = self.about
        asked = list(suspects)
        for start in range(0, len(asked), _SOME):
            some = asked[start : start + _SOME]
            found = await confirm(about.pool, about.blobs, about.mount.id, some, quiet_seconds)
            await self._record(topmost(found.differences))
            self._busy -= set(some)
            self._busy |= set(found.busy)

    async def _look_again(self) -> None:
        """At what somebody was writing to, until it stands still; nobody is waited for for ever."""
        for look in range(_LOOKS):
            if not self._busy:
                return
            await asyncio.sleep(_LOOK_AGAIN_SECONDS)
            quiet = _LOOK_AGAIN_SECONDS if look < _PATIENT_LOOKS else 0
            await self._examine(sorted(self._busy), quiet)

    async def _hidden(self, directories: list[str]) -> list[Difference]:
        """Directories that may not be listed, unless that is known."""
        async with self.about.pool.connection() as conn:
            moments = await known.at(conn, self.about.mount.id, directories)
        return [
            Difference(path, "unreadable", moment.node.id)
            for path, moment in moments.items()
            if moment.node is not None and moment.node.state == "active" and not moment.claimed
        ]

    async def _record(self, differences: list[Difference]) -> None:
        about = self.about
        detection = Detection(about.mount, differences, about.cause, SOURCE, about.correlation_id)
        self.progress.drifted += await drifts.record(about.pool, detection)

    async def settled(self, prefix: str) -> None:
        """Waits until what was found so far is settled."""
        pool = self.about.pool
        until = await drifts.now(pool)
        while True:
            async with pool.connection() as conn:
                if not await drifts.is_open(conn, self.about.mount.id, prefix, until):
                    return
            await self.progress.show()
            await asyncio.sleep(_LOOK_AGAIN_SECONDS / 2)
