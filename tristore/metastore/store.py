"""The metastore of one process: what its routes and workers use, put together."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from tristore.config import MetastoreSettings
from tristore.db.pool import Pool
from tristore.events.poke import Poke
from tristore.metastore.applying import Applying
from tristore.metastore.forgetting import Forgetting
from tristore.metastore.hooks import Hooks
from tristore.metastore.indexes import DeclaredIndexes
from tristore.metastore.records import Records
from tristore.metastore.rules import Rulebook
from tristore.metastore.settling import Settling


@dataclass(frozen=True, slots=True)
class Metastore:
    settling: Settling
    applying: Applying
    records: Records


@asynccontextmanager
async def open_metastore(pool: Pool, settings: MetastoreSettings) -> AsyncIterator[Metastore]:
    applying = Applying(Rulebook(settings), Hooks.installed())
    async with (
        Poke(pool) as poke,
        Forgetting(pool, settings.idempotency_keep_hours),
        DeclaredIndexes(pool),
    ):
        settling = Settling(pool, poke)
        yield Metastore(settling, applying, Records(settling, applying))
