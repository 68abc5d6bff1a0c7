"""The way of a body into a dataset: spooled, read by a process of its own, staged, numbered."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import psycopg
from psycopg_pool import PoolTimeout

from tristore.config import Settings
from tristore.db.pool import Connection, Pool
from tristore.errors import KeyConflict, OutcomeUnknown, TristoreError
from tristore.failpoints import failpoint
from tristore.timestore import access, datasets, ingest
from tristore.timestore.dataset import Dataset
from tristore.timestore.evolution import grown
from tristore.timestore.formats import Format
from tristore.timestore.ingest import Batch, NewBatch
from tristore.timestore.intake_pool import Files, IntakePool, Limits
from tristore.timestore.place import tables_place
from tristore.timestore.root import Root
from tristore.timestore.schemas import Column
from tristore.timestore.settlement import Settlement
from tristore.timestore.spool import Spooled, spooled
from tristore.timestore.staging import Draft, Staging

_AWAY = (psycopg.OperationalError, psycopg.InterfaceError, PoolTimeout)
_ASK_TRIES = 5


@dataclass(frozen=True, slots=True)
class Asked:
    """Who sends rows in which format; `evolve`: new columns are taken in."""

    dataset: Dataset
    format: Format
    evolve: bool
    token_id: str
    principal: str
    key: str | None
    correlation_id: str | None


@dataclass(frozen=True, slots=True)
class Taken:
    batch: Batch
    replayed: bool = False


class Ingesting:
    def __init__(self, settings: Settings, pool: Pool, settlement: Settlement) -> None:
        own = settings.timestore
        self._settings = own
        self._pool = pool
        self._settlement = settlement
        place = tables_place(settings)
        self._root = Root(place, pool)
        self._staging = Staging(place, settings.data_dir)
        self._intakes = IntakePool(
            Limits(own.ingest_processes, own.ingest_seconds, own.ingest_memory_mb)
        )

    async def take(self, asked: Asked, body: AsyncIterator[bytes]) -> Taken:
        """Durable when it returns; the pipeline brings it into the table."""
        await self._root.check()
        most = self._settings.max_ingest_bytes
        async with spooled(body, self._staging.spool, most) as spool:
            if before := await self._before(asked, spool):
                return Taken(before, replayed=True)
            async with self._staging.draft(asked.dataset.folder) as draft:
                found = await self._read(asked, spool, draft)
                size = await self._staging.publish(draft)
        failpoint("ingest.after_publish")
        batch = NewBatch(
            dataset=asked.dataset.slug,
            file=draft.name,
            format=asked.format,
            rows=found["rows"],
            size=size,
            from_time=found["from"],
            to_time=found["to"],
            schema_version=asked.dataset.version,
            token_id=asked.token_id,
            principal=asked.principal,
            key=asked.key,
            request_hash=spool.sha256,
            correlation_id=asked.correlation_id,
        )
        return await self._stage(asked, batch, [Column.of(c) for c in found["columns"]])

    async def find(self, batch_id: int) -> Batch | None:
        async with self._pool.connection() as conn:
            return await ingest.find(conn, batch_id)

    async def committed(self, batch: Batch, seconds: float) -> Batch:
        """The batch when it is settled, or as it stands after `seconds`."""
        await self._settlement.wait(batch.id, seconds)
        return await self.find(batch.id) or batch

    async def aclose(self) -> None:
        await self._intakes.aclose()

    async def _before(self, asked: Asked, spool: Spooled) -> Batch | None:
        """What the same key brought already."""
        if asked.key is None:
            return None
        async with self._pool.connection() as conn:
            return await _of_key(conn, asked, spool.sha256)

    async def _read(self, asked: Asked, spool: Spooled, draft: Draft) -> dict[str, Any]:
        request = {
            "format": asked.format,
            "columns": [column.to_json() for column in asked.dataset.columns],
            "time_column": asked.dataset.time_column,
            "evolve": asked.evolve,
            "most_json_bytes": self._settings.max_ingest_json_bytes,
        }
        return await self._intakes.run(request, Files(spool.file.fileno(), draft.file.fileno()))

    async def _stage(self, asked: Asked, batch: NewBatch, new: list[Column]) -> Taken:
        try:
            async with self._pool.connection() as conn, conn.transaction():
                made = await _staged(conn, asked, batch, new)
                failpoint("ingest.before_commit")
        except (TristoreError, psycopg.errors.UniqueViolation) as refusal:
            await self._staging.discard(batch.file)
            if isinstance(refusal, TristoreError):
                raise
            return Taken(await self._winner(asked, batch), replayed=True)
        except _AWAY as error:
            # The file stays: a batch may name it.
            return Taken(await self._outcome(batch.file, error))
        failpoint("ingest.after_commit")
        return Taken(made)

    async def _winner(self, asked: Asked, batch: NewBatch) -> Batch:
        """Of two with one key the one that was quicker."""
        async with self._pool.connection() as conn:
            found = await _of_key(conn, asked, batch.request_hash)
        if found is None:
            raise KeyConflict("another ingest with this Idempotency-Key has failed; send it again")
        return found

    async def _outcome(self, file: str, error: Exception) -> Batch:
        for attempt in range(_ASK_TRIES):
            try:
                async with self._pool.connection() as conn:
                    if found := await ingest.by_file(conn, file):
                        return found
                break
            except _AWAY:
                await asyncio.sleep(0.2 * (attempt + 1))
        raise OutcomeUnknown(
            "the database went away while the rows were staged; send them again, with the same "
            "Idempotency-Key if they had one"
        ) from error


async def _of_key(conn: Connection, asked: Asked, digest: bytes) -> Batch | None:
    assert asked.key is not None
    found = await ingest.by_key(conn, asked.dataset.slug, asked.token_id, asked.key)
    if found is not None and found.request_hash != digest:
        raise KeyConflict("this Idempotency-Key was used for other rows; take another")
    return found


async def _staged(conn: Connection, asked: Asked, batch: NewBatch, new: list[Column]) -> Batch:
    """The dataset must still be the one the rows were read for; it may have grown meanwhile."""
    find = datasets.lock if new else datasets.share
    now = await find(conn, asked.dataset.slug)
    if now is None or not now.active or now.folder != asked.dataset.folder:
        raise access.absent()
    if new:
        changed = replace(now, columns=grown(now.columns, new))
        now = await datasets.alter(conn, now, changed, asked.principal)
    return await ingest.add(conn, replace(batch, schema_version=now.version))


@asynccontextmanager
async def open_ingesting(settings: Settings, pool: Pool) -> AsyncIterator[Ingesting]:
    async with AsyncExitStack() as stack:
        settlement = await stack.enter_async_context(Settlement(pool))
        ingesting = Ingesting(settings, pool, settlement)
        stack.push_async_callback(ingesting.aclose)
        yield ingesting
