"""The supervisor behind `tristore up`: embedded servers, migrations, parts, and an orderly end."""

import asyncio
import inspect
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from tristore.config import Settings, child_environment
from tristore.db import migrate
from tristore.errors import StartRefused
from tristore.local import lock, port, run_file
from tristore.local.child import Child, Command
from tristore.local.keeper import Keeper, Service, exited
from tristore.local.part import Part, PartProcess
from tristore.local.postgres import EmbeddedPostgres
from tristore.local.redis import EmbeddedRedis
from tristore.local.run_file import Run

log = logging.getLogger(__name__)

TOKEN_FILE = "operator.token"
MIGRATE = (sys.executable, "-m", "tristore", "migrate")


@dataclass(frozen=True, slots=True)
class Hooks:
    """`make_token(database_url, file)` runs once the schema is there, `announce` once every
    part is started; both are ended early when the platform is stopped."""

    make_token: Callable[[str, Path], Awaitable[None] | None]
    announce: Callable[[Run], Awaitable[None]]


class Stack:
    def __init__(self, settings: Settings, parts: Sequence[Part], hooks: Hooks) -> None:
        self.folder = settings.data_dir.absolute()
        self._settings = settings
        self._parts = parts
        self._hooks = hooks
        self._servers: list[Keeper] = []
        self._running: list[Keeper] = []
        self._run: Run | None = None

    async def run(self) -> None:
        """Returns after SIGINT, SIGTERM or SIGHUP, with every child gone."""
        with lock.hold(self.folder):
            api_port = choose_port(self._settings.host, self._settings.port)
            stopped = asyncio.create_task(_stop_signal().wait())
            serving = asyncio.create_task(self._serve(api_port))
            try:
                await asyncio.wait({stopped, serving}, return_when=asyncio.FIRST_COMPLETED)
                await _ended(serving)
            finally:
                stopped.cancel()
                await self._shut_down()

    async def _serve(self, api_port: int) -> None:
        database, shown_database = await self._start_postgres()
        redis = await self._start_redis()
        environment = child_environment(
            {
                "TRISTORE_DATABASE_URL": database,
                "TRISTORE_REDIS_URL": redis,
                "TRISTORE_DATA_DIR": str(self.folder),
                "TRISTORE_HOST": self._settings.host,
                "TRISTORE_PORT": str(api_port),
            }
        )
        await self._migrate(database, environment)
        token_file = self.folder / TOKEN_FILE
        await _maybe_async(self._hooks.make_token(database, token_file))
        url = f"http://{reachable(self._settings.host)}:{api_port}"
        self._run = Run(url, shown_database, redis, token_file, os.getpid())
        for part in self._parts:
            await self._keep(PartProcess(part, self._log(part.name), environment), self._running)
        self._record()
        await self._hooks.announce(self._run)
        # Nothing more to do: the keepers work until a signal ends the platform.
        await asyncio.Event().wait()

    async def _start_postgres(self) -> tuple[str, str]:
        """The URL for our own parts, and the one to show to people."""
        if given := self._settings.database_url:
            return given, given
        server = EmbeddedPostgres(self.folder / "postgres", self._log("postgres"))
        url = await self._keep(server, self._servers)
        return str(url), server.client_url()

    async def _start_redis(self) -> str:
        if given := self._settings.redis_url:
            return given
        server = EmbeddedRedis(self.folder / "redis", self._log("redis"))
        return str(await self._keep(server, self._servers))

    async def _keep(self, service: Service, among: list[Keeper]) -> object:
        keeper = Keeper(service, self._record)
        among.append(keeper)
        return await keeper.start()

    async def _migrate(self, database: str, environment: dict[str, str]) -> None:
        if await asyncio.to_thread(migrate.current, database) == migrate.head():
            return
        child = await asyncio.to_thread(Child, Command(MIGRATE, self._log("migrate"), environment))
        try:
            await exited(child.pid)
        finally:
            child.kill()
        if child.wait() != 0:
            raise StartRefused(
                f"the database could not be migrated; the reason is in {self._log('migrate')}"
            )

    def _record(self) -> None:
        """Tells other programs the pids of this moment."""
        if self._run:
            services = (keeper.service for keeper in (*self._servers, *self._running))
            pids = {s.name: s.pid for s in services if s.pid is not None and s.poll() is None}
            self._run = replace(self._run, pids=pids)
            try:
                run_file.write(self.folder, self._run)
            except OSError as error:
                # A full disk must not also end the watch over the parts.
                log.warning("run file not written", extra={"reason": str(error)})

    async def _shut_down(self) -> None:
        """Parts first, since they still need the servers; Postgres last."""
        self._run = None
        await _stop_all(self._running)
        for server in reversed(self._servers):
            await server.stop()
        run_file.remove(self.folder)

    def _log(self, name: str) -> Path:
        return self.folder / "logs" / f"{name}.log"


def choose_port(host: str, wanted: int) -> int:
    if wanted == 0:
        return port.pick()
    try:
        free = port.is_free(host, wanted)
    except OSError as error:
        raise StartRefused(
            f"cannot listen on {host}:{wanted} ({error.strerror}); choose another --host or --port"
        ) from None
    if not free:
        raise StartRefused(
            f"{host}:{wanted} is in use by another program; stop it, or choose another --port"
        )
    return wanted


def reachable(host: str) -> str:
    """The address a client on this machine uses for a server that listens on `host`."""
    local = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)
    return f"[{local}]" if ":" in local else local


def _stop_signal() -> asyncio.Event:
    stop = asyncio.Event()
    for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(sig, stop.set)
    return stop


async def _ended(task: asyncio.Task[None]) -> None:
    """Ends the task if it still runs, and raises what made it fail."""
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def _stop_all(keepers: Iterable[Keeper]) -> None:
    await asyncio.gather(*(keeper.stop() for keeper in keepers))


async def _maybe_async(result: Awaitable[None] | None) -> None:
    if inspect.isawaitable(result):
        await result
