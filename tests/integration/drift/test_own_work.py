"""What the filestore does itself is never drift."""

import asyncio
from pathlib import Path
from typing import Any

from tests.integration.drift.strangers import settled
from tests.support.filestore import ME, new_mount, write
from tests.support.upkeep import audit, told_of, watched
from tests.support.waiting import until
from tristore.config import Settings
from tristore.errors import ContentConflict, PathConflict, Transient, TristoreError
from tristore.filestore.model import Mount
from tristore.filestore.store import Filestore

DRIFT = "filestore.drift.detected"


async def test_what_the_filestore_does_itself_is_no_drift(
    filestore: Filestore, settings: Settings, tmp_path: Path
) -> None:
    """Commands of every kind from eight clients, while a watcher and one audit after another
    compare what they leave."""
    mount = await new_mount(filestore, tmp_path)
    async with watched(filestore, settings, mount):
        done = audits = 0
        for first in (0, 8):  # twice, so that audits run beside commands more than once
            numbers = range(first, first + 8)
            clients = asyncio.gather(*(_client(filestore, mount, number) for number in numbers))
            while not clients.done():
                await audit(filestore, mount)
                audits += 1
            done += sum(await clients)
        await audit(filestore, mount)
        # Seen by the same watch, so it has passed over all that came before.
        (tmp_path / "stranger").write_bytes(b"1")
        await until(lambda: _answer(told_of(filestore, mount, DRIFT)))
        await settled(filestore, mount, tmp_path)
    assert done > 300 and audits > 1
    assert _told_to_drift(filestore, mount) == ["stranger"]


async def _client(filestore: Filestore, mount: Mount, number: int) -> int:
    """Puts, overwrites, makes, moves, copies and deletes, files and trees."""
    done = 0
    for turn in range(8):
        here = f"c{number}/t{turn}"
        await write(filestore, mount, f"{here}/f", b"x" * turn)
        await write(filestore, mount, f"{here}/f", b"y" * (turn + 1))
        await filestore.create_directory(ME, mount.name, f"{here}/made/below")
        await filestore.copy(ME, mount.name, f"{here}/f", f"{here}/made/g")
        await filestore.move(ME, mount.name, f"{here}/made", f"{here}/moved")
        await filestore.delete(ME, mount.name, f"{here}/f")
        done += 6
        if turn % 2:
            await filestore.delete(ME, mount.name, here, recursive=True)
            done += 1
    return done


async def _answer(value: Any) -> Any:
    return value


async def test_a_command_and_a_stranger_at_one_path(
    filestore: Filestore, settings: Settings, tmp_path: Path
) -> None:
    """Whoever wins, the tree says what lies there."""
    mount = await new_mount(filestore, tmp_path)
    async with watched(filestore, settings, mount):
        for turn in range(30):
            (tmp_path / "f").write_bytes(b"stranger %d" % turn)
            try:
                await write(filestore, mount, "f", b"ours %d" % turn)
            except TristoreError as error:
                assert isinstance(error, Transient | ContentConflict | PathConflict), error
        await settled(filestore, mount, tmp_path)


def _told_to_drift(filestore: Filestore, mount: Mount) -> list[str]:
    return [event["payload"]["path"] for event in told_of(filestore, mount, DRIFT)]
