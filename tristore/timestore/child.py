"""A query worker (`python -m`): loads the engines once, then answers one query after the other.

It has an empty environment and limits of its own, and is all that a hostile query can bring down.
"""

import ctypes
import json
import os
import pickle
import resource
import sys
import traceback
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

from tristore.errors import TristoreError
from tristore.timestore.frames import frame, take
from tristore.timestore.place import Place
from tristore.timestore.requests import Query

if TYPE_CHECKING:
    from tristore.timestore.query import Engine

_M_ARENA_MAX = -8  # in glibc's malloc.h


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a worker is told when it starts; it holds passwords, so it never goes by environment."""

    root: Place
    database_url: str
    growth_depth: int
    # Address space: DuckDB's memory, and what threads and libraries reserve without using it.
    address_space_mb: int


def main() -> None:
    # Whatever a library prints must not come between our frames.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    requests = sys.stdin.buffer
    first = take(requests)
    if first is None:
        return
    # Requests come from the process that started this one; the way back is JSON and bytes.
    engine = _engine(pickle.loads(first))
    _send(answers, {"ready": True})
    while (request := take(requests)) is not None:
        _send(answers, *_answered(engine, pickle.loads(request)))
        engine.prepare()


def _engine(given: Surroundings) -> "Engine":
    _share_arenas()
    from tristore.timestore.logrows import LogRows
    from tristore.timestore.offer import Offers
    from tristore.timestore.query import Engine
    from tristore.timestore.tail import LogTail

    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (given.address_space_mb * 2**20,) * 2)
    log = LogTail(LogRows(given.database_url))
    engine = Engine(Offers(given.root, log, given.growth_depth))
    engine.prepare()
    return engine


def _share_arenas() -> None:
    """Threads of DuckDB, more than twenty, would reserve 64 MiB of address space each."""
    with suppress(AttributeError):  # a C library without them
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 4)


def _answered(engine: "Engine", query: Query) -> tuple[dict[str, Any], bytes]:
    from tristore.timestore.query import OutOfMemory

    _limit_processor(query.limits.seconds)
    try:
        answered = engine.run(query)
    except OutOfMemory as error:
        return {"error": "InvalidRequest", "message": str(error), "spent": True}, b""
    except TristoreError as error:
        return {"error": type(error).__name__, "message": str(error)}, b""
    except Exception:
        # Told to the operator, by stderr; the caller learns nothing of this machine.
        traceback.print_exc()
        message = "the query could not be run; the reason is in the server's log"
        return {"error": "Unavailable", "message": message}, b""
    return {"meta": answered.meta}, answered.body


def _limit_processor(seconds: float) -> None:
    """The wall clock belongs to the asking process; this ends a worker whose asker was killed."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    most = int(used.ru_utime + used.ru_stime + seconds * 4) + 1
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (most, hard))


def _send(answers: BinaryIO, head: dict[str, Any], body: bytes = b"") -> None:
    left = memoryview(frame(json.dumps(head).encode(), body))
    while left:
        left = left[answers.write(left) :]


if __name__ == "__main__":
    main()
