"""Settings -> Platform: the only place that picks implementations."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from tristore.browser_sessions import BrowserSessions
from tristore.config import INLINE, Settings
from tristore.db.pool import Pool, make_pool
from tristore.db.wakeups import LOG, OUTBOX, SCHEMAS, Listener
from tristore.errors import StartRefused, Unavailable
from tristore.events.consumer import QueueConsumer
from tristore.events.ingress import EventIngressWorker
from tristore.events.inline import InlineTransport, Transport
from tristore.events.live.live import LiveFeed
from tristore.events.live.tail import Tail
from tristore.events.microbatches import MicroBatches
from tristore.events.poke import Poke
from tristore.events.queue import EventQueue
from tristore.events.registry.registry import Registry
from tristore.events.registry.schema_watch import SchemaWatch
from tristore.events.relay import Relay
from tristore.filestore.owners import Owner
from tristore.filestore.recovery import Recovery
from tristore.filestore.store import Filestore
from tristore.filestore.upkeep import Upkeep
from tristore.filestore.watch import Watcher
from tristore.metastore.alignment import Alignment
from tristore.metastore.hooks import Hooks
from tristore.metastore.rules import Rulebook
from tristore.metastore.store import Metastore, open_metastore
from tristore.metastore.sync import FilestoreSync
from tristore.metastore.sync_control import CONSUMER as SYNC
from tristore.subscriptions import types_of
from tristore.timestore.child import Surroundings
from tristore.timestore.ingesting import Ingesting, open_ingesting
from tristore.timestore.place import tables_place
from tristore.timestore.workers import Workers
from tristore.tokens import Tokens


@dataclass(frozen=True, slots=True)
class Platform:
    """What the API process works with."""

    settings: Settings
    pool: Pool
    registry: Registry
    tokens: Tokens
    sessions: BrowserSessions
    tail: Tail
    live: LiveFeed
    metastore: Metastore
    filestore: Filestore
    ingesting: Ingesting
    workers: Workers
    queue: EventQueue | None  # None where the bus runs without one


@asynccontextmanager
async def open_platform(settings: Settings) -> AsyncIterator[Platform]:
    database_url, redis_url = _addresses(settings)
    async with AsyncExitStack() as stack:
        pool = await stack.enter_async_context(make_pool(database_url, name="api", max_size=20))
        listener = await stack.enter_async_context(Listener(database_url, [LOG, SCHEMAS]))
        # Connections of its own: it tries again anyway, and readers must not wait for requests.
        reading = make_pool(database_url, name="tail", max_size=4, checked=False)
        await stack.enter_async_context(reading)
        tail = Tail(reading, listener, settings.events.poll_seconds)
        await stack.enter_async_context(tail)
        queue = None
        if redis_url != INLINE:
            queue = EventQueue(redis_url, settings.events.queue)
            stack.push_async_callback(queue.close)
        registry = _registry(settings)
        poll_seconds = settings.events.poll_seconds
        await stack.enter_async_context(SchemaWatch(pool, registry, listener, poll_seconds))
        tokens = Tokens(pool)
        sessions = BrowserSessions(pool, settings.http.session_hours)
        live = LiveFeed(tail, tokens, settings.http)
        await stack.enter_async_context(live)
        metastore = await stack.enter_async_context(open_metastore(pool, settings.metastore))
        filestore = await stack.enter_async_context(open_filestore(settings, pool))
        ingesting = await stack.enter_async_context(open_ingesting(settings, pool))
        workers = _workers(settings, database_url)
        stack.push_async_callback(workers.aclose)
        yield Platform(
            settings=settings,
            pool=pool,
            registry=registry,
            tokens=tokens,
            sessions=sessions,
            tail=tail,
            live=live,
            metastore=metastore,
            filestore=filestore,
            ingesting=ingesting,
            workers=workers,
            queue=queue,
        )


def _workers(settings: Settings, database_url: str) -> Workers:
    given = settings.timestore
    return Workers(
        Surroundings(
            root=tables_place(settings),
            database_url=database_url,
            growth_depth=given.growth_depth,
            # DuckDB's memory, and what threads and libraries reserve without using it.
            address_space_mb=given.query_memory_mb + 2048,
        ),
        most=given.query_workers,
        wait_seconds=given.query_seconds,
    )


@asynccontextmanager
async def open_filestore(
    settings: Settings, pool: Pool, *, recovering: bool = True
) -> AsyncIterator[Filestore]:
    """The filestore of one process, which also takes up what dead processes left open, unless
    the caller does that when it likes."""
    async with AsyncExitStack() as stack:
        poke = await stack.enter_async_context(Poke(pool))
        owner = Owner(pool)
        stack.push_async_callback(owner.leave)
        await stack.enter_async_context(owner)
        filestore = Filestore(settings, pool, owner, poke)
        stack.push_async_callback(filestore.aclose)
        if recovering:
            await stack.enter_async_context(Recovery(filestore.bench))
        yield filestore


@asynccontextmanager
async def open_reconciler(settings: Settings) -> AsyncIterator[Upkeep]:
    database_url = _database(settings)
    async with (
        make_pool(database_url, name="reconcile", max_size=8, checked=False) as pool,
        open_filestore(settings, pool) as filestore,
    ):
        yield Upkeep(filestore)


@asynccontextmanager
async def open_watcher(settings: Settings) -> AsyncIterator[Watcher]:
    database_url = _database(settings)
    async with make_pool(database_url, name="watch", max_size=4, checked=False) as pool:
        yield Watcher(pool, settings)


@asynccontextmanager
async def open_relay(settings: Settings) -> AsyncIterator[Relay]:
    database_url, redis_url = _addresses(settings)
    async with (
        make_pool(database_url, name="relay", max_size=4, checked=False) as pool,
        Listener(database_url, [OUTBOX]) as listener,
    ):
        transport = await _transport(settings, redis_url, pool)
        try:
            yield Relay(pool, transport, listener, settings.events)
        finally:
            await transport.close()


async def _transport(settings: Settings, redis_url: str, pool: Pool) -> Transport:
    if redis_url == INLINE:
        return InlineTransport(EventIngressWorker(pool, _registry(settings), None))
    queue = EventQueue(redis_url, settings.events.queue)
    await _refuse_eviction(queue)
    return queue


async def _refuse_eviction(queue: EventQueue) -> None:
    """A Redis that is away is waited for; one that may throw jobs away is refused."""
    try:
        await queue.check()
    except Unavailable:
        pass


@asynccontextmanager
async def open_ingress(settings: Settings) -> AsyncIterator[QueueConsumer]:
    database_url, redis_url = _addresses(settings)
    if redis_url == INLINE:
        raise StartRefused("TRISTORE_REDIS_URL is `inline`: the relay stores events itself")
    events = settings.events
    queue = EventQueue(redis_url, events.queue)
    async with make_pool(database_url, name="ingress", max_size=3, checked=False) as pool:
        try:
            await _refuse_eviction(queue)
            worker = EventIngressWorker(pool, _registry(settings), queue)
            yield QueueConsumer(
                redis_url,
                events.queue,
                MicroBatches(worker),
                limit=events.ingress_jobs,
                lock_seconds=events.lock_seconds,
            )
        finally:
            await queue.close()


@asynccontextmanager
async def open_sync(settings: Settings) -> AsyncIterator[FilestoreSync]:
    if (database_url := settings.database_url) is None:
        raise StartRefused("TRISTORE_DATABASE_URL is not set; set it, or run `tristore up`")
    if (namespace := settings.records_of_nodes()) is None:
        raise StartRefused("TRISTORE_METASTORE__FILESTORE_SYNC is false: there is nothing to do")
    alignment = Alignment(namespace, Rulebook(settings.metastore), Hooks.installed())
    async with (
        make_pool(database_url, name="sync", max_size=2, checked=False) as pool,
        Listener(database_url, [LOG]) as listener,
    ):
        poll_seconds = settings.events.poll_seconds
        yield FilestoreSync(pool, listener, alignment, types_of(SYNC), poll_seconds)


def _registry(settings: Settings) -> Registry:
    return Registry.of_catalogue(require_schema=settings.events.require_schema)


def _database(settings: Settings) -> str:
    if settings.database_url is None:
        raise StartRefused(
            "TRISTORE_DATABASE_URL is not set; set it, or run `tristore up`, "
            "which brings its own servers"
        )
    return settings.database_url


def _addresses(settings: Settings) -> tuple[str, str]:
    if settings.database_url is None or settings.redis_url is None:
        raise StartRefused(
            "TRISTORE_DATABASE_URL and TRISTORE_REDIS_URL are not set; "
            "set both, or run `tristore up`, which brings its own servers"
        )
    return settings.database_url, settings.redis_url
