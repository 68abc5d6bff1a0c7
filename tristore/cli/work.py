"""`tristore work`: background parts as processes of their own."""

import asyncio
import signal
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Annotated, Protocol

import typer
import uvloop

from tristore import failpoints, observe
from tristore.config import Settings

PARTS = ("relay", "ingress", "sync", "reconcile", "watch")


class Runs(Protocol):
    async def run(self) -> None: ...


def work(
    parts: Annotated[
        str, typer.Argument(help=f"Comma separated: {', '.join(PARTS)}.")
    ] = "relay,ingress",
) -> None:
    """Run background parts until SIGTERM."""
    chosen = parts.split(",")
    if unknown := [part for part in chosen if part not in PARTS]:
        raise typer.BadParameter(f"unknown: {', '.join(unknown)}; known: {', '.join(PARTS)}")
    settings = Settings()
    observe.configure_logs(parts)
    failpoints.arm(settings.failpoints)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_run(settings, chosen))


async def _run(settings: Settings, chosen: list[str]) -> None:
    tasks = [asyncio.create_task(_part(settings, part), name=part) for part in chosen]
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, lambda: [task.cancel() for task in tasks])
    done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    await asyncio.gather(*pending, return_exceptions=True)
    for task in done:
        if not task.cancelled() and (error := task.exception()):
            raise error


async def _part(settings: Settings, part: str) -> None:
    # Imported here, so that no other command pays for the queue and the pool.
    from tristore import wiring

    opened: dict[str, Callable[[Settings], AbstractAsyncContextManager[Runs]]] = {
        "relay": wiring.open_relay,
        "ingress": wiring.open_ingress,
        "sync": wiring.open_sync,
        "reconcile": wiring.open_reconciler,
        "watch": wiring.open_watcher,
    }
    async with opened[part](settings) as worker:
        await worker.run()
