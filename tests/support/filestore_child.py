"""A process that carries out one filestore command, or recovery, and may be killed on its way."""

import asyncio
from dataclasses import dataclass
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

from tests.support.filestore import ME, SMALL_CHUNKS, content, own_filestore, settings_for
from tests.support.warm import CONTEXT
from tristore import failpoints


@dataclass(frozen=True)
class Errand:
    """A method of Filestore with its arguments, or `recover`."""

    database_url: str
    data_dir: Path
    method: str
    args: tuple[Any, ...] = ()
    failpoint: str = ""


def killed(errand: Errand) -> bool:
    """Whether the process died on its errand; any other end than success is an error."""
    process = sent(errand)
    process.join(60)
    assert process.exitcode in (0, -9), process.exitcode
    return process.exitcode == -9


def sent(errand: Errand) -> ForkServerProcess:
    process = CONTEXT.Process(target=_main, args=(errand,))
    process.start()
    return process


def _main(errand: Errand) -> None:
    failpoints.arm(errand.failpoint)
    asyncio.run(_run(errand))


async def _run(errand: Errand) -> None:
    settings = settings_for(errand.database_url, errand.data_dir, SMALL_CHUNKS)
    async with own_filestore(settings) as store:
        if errand.method == "recover":
            await store.recover()
            return
        # Content is a stream, which no argument can carry.
        args = [content(arg) if isinstance(arg, bytes) else arg for arg in errand.args]
        await getattr(store, errand.method)(ME, *args)
