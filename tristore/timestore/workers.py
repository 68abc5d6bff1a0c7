"""The pool of query workers: warm processes, one query each at a time, replaced when spent."""

import asyncio
import json
import logging
import pickle
import signal
import sys
from asyncio.subprocess import PIPE, Process
from contextlib import suppress
from dataclasses import dataclass, field

from tristore import errors
from tristore.timestore.child import Surroundings
from tristore.timestore.encodings import ROWS
from tristore.timestore.frames import frame, receive
from tristore.timestore.requests import Answer, Query

_START_SECONDS = 60.0
# After so many queries a worker is replaced: what its libraries have not given back goes with it.
_QUERIES = 2_000
_ERRORS: dict[str, type[errors.TristoreError]] = {
    kind.__name__: kind
    for kind in (
        errors.SqlForbidden,
        errors.InvalidRequest,
        errors.Unavailable,
        errors.TableDamaged,
        errors.TooBroad,
    )
}
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Worker:
    process: Process
    answered: int = 0

    @classmethod
    async def start(cls, surroundings: Surroundings) -> "Worker":
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tristore.timestore.child"),
            stdin=PIPE,
            stdout=PIPE,
            # Our own environment holds passwords.
            env={},
        )
        worker = cls(process)
        try:
            async with asyncio.timeout(_START_SECONDS):
                await worker._exchange(pickle.dumps(surroundings))
        except (TimeoutError, EOFError, OSError):
            raise errors.Unavailable("a query worker could not be started; try again") from None
        finally:
            if not worker.answered:
                await worker.end()
        return worker

    @property
    def fit(self) -> bool:
        return self.process.returncode is None and self.answered < _QUERIES

    async def ask(self, query: Query) -> Answer:
        try:
            async with asyncio.timeout(query.limits.seconds):
                head, body = await self._exchange(pickle.dumps(query))
        except TimeoutError:
            raise _too_long(query) from None
        except (EOFError, OSError):
            raise await self._death(query) from None
        told = json.loads(head)
        if told.get("spent"):
            self.answered = _QUERIES
        if "error" in told:
            raise _ERRORS[told["error"]](told["message"])
        return Answer(body, ROWS[query.format], told["meta"])

    async def end(self) -> None:
        with suppress(ProcessLookupError):
            self.process.kill()
        await self.process.wait()

    async def _exchange(self, request: bytes) -> tuple[bytes, bytes]:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(frame(request))
        await self.process.stdin.drain()
        found = await receive(self.process.stdout)
        self.answered += 1
        return found

    async def _death(self, query: Query) -> errors.TristoreError:
        await self.end()
        code = self.process.returncode or 0
        _log.warning("a query worker ended with %d", code)
        if code == -signal.SIGXCPU:
            return _too_long(query)
        if code < 0:
            return errors.InvalidRequest(
                f"the query needed more than the {query.limits.memory_mb} MiB a query may use; "
                "narrow it"
            )
        return errors.Unavailable("the query could not be run; the reason is in the server's log")


@dataclass(slots=True)
class Workers:
    """All started when the first is needed; `run` waits for a free one."""

    surroundings: Surroundings = field(repr=False)
    most: int = 2
    wait_seconds: float = 10
    _idle: list[Worker] = field(default_factory=list)
    _warming: set[asyncio.Task[None]] = field(default_factory=set)
    _slots: asyncio.Semaphore = field(init=False)
    _begun: bool = False
    _closed: bool = False

    def __post_init__(self) -> None:
        self._slots = asyncio.Semaphore(self.most)

    async def run(self, query: Query) -> Answer:
        try:
            async with asyncio.timeout(self.wait_seconds):
                await self._slots.acquire()
        except TimeoutError:
            raise errors.Unavailable("all query workers are busy; try again") from None
        try:
            return await self._run(query)
        finally:
            self._slots.release()

    async def aclose(self) -> None:
        self._closed = True
        for task in self._warming:
            task.cancel()
        await asyncio.gather(*self._warming, return_exceptions=True)
        await asyncio.gather(*(worker.end() for worker in self._idle))
        self._idle.clear()

    async def _run(self, query: Query) -> Answer:
        worker = await self._take()
        before = worker.answered
        try:
            return await worker.ask(query)
        finally:
            # One that did not answer, in time or at all, still works on the query.
            if worker.answered > before and worker.fit and not self._closed:
                self._idle.append(worker)
            else:
                await self._replace(worker)

    async def _take(self) -> Worker:
        while self._idle:
            # Whoever has rested longest: the others may still be tidying up.
            worker = self._idle.pop(0)
            if worker.fit:
                return worker
            await worker.end()
        if not self._begun:
            self._begun = True
            for _ in range(self.most - 1):
                self._add()
        return await Worker.start(self.surroundings)

    async def _replace(self, worker: Worker) -> None:
        if not self._closed:
            self._add()
        await worker.end()

    def _add(self) -> None:
        task = asyncio.create_task(self._warm())
        self._warming.add(task)
        task.add_done_callback(self._warming.discard)

    async def _warm(self) -> None:
        """So that the next query need not wait for a start."""
        try:
            worker = await Worker.start(self.surroundings)
        except errors.Unavailable as error:
            _log.warning("%s", error)
            return
        if self._closed or len(self._idle) >= self.most:
            await worker.end()
        else:
            self._idle.append(worker)


def _too_long(query: Query) -> errors.TookTooLong:
    return errors.TookTooLong(
        f"the query ran longer than {query.limits.seconds:g} s and was stopped; narrow it"
    )
