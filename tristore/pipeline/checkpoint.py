"""The checkpoint folder: whose it is, which batches it planned, and where each began and ended."""

import json
import os
import uuid
from dataclasses import dataclass
from pathlib import Path

from tristore.errors import CheckpointMismatch
from tristore.pipeline.log import Position

_IDENTITY = "tristore.json"


@dataclass(frozen=True, slots=True)
class Span:
    """The events of `(after, through]` in one epoch of the log: exactly what a batch holds."""

    epoch: str
    after: int
    through: int

    def __len__(self) -> int:
        return self.through - self.after


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """`app_id` lives inside the folder: batch ids start again at 0 with a new folder, and under
    an old app id the table would take them for batches it has."""

    folder: Path
    app_id: str
    initial: Position

    @classmethod
    def open(cls, folder: Path, table: str, start: Position) -> "Checkpoint":
        """Reads the folder's identity; a new folder gets one and begins at `start`."""
        file = folder / _IDENTITY
        if not file.exists():
            if (folder / "offsets").exists():
                raise CheckpointMismatch(
                    f"the checkpoint of {table} has batches but no {_IDENTITY}: restore that "
                    "file, or move the checkpoint folder and the table away and start again"
                )
            _create(file, {"appId": f"{table}:{uuid.uuid4()}", "initial": start.as_offset()})
        found = json.loads(file.read_text("utf-8"))
        return cls(folder, found["appId"], Position.of_offset(found["initial"]))

    def app_of(self, table: str) -> str:
        """The Delta application under which this folder's query writes a table."""
        return f"{table}:{self.owner}"

    @property
    def owner(self) -> str:
        return self.app_id.partition(":")[2]

    def span(self, batch_id: int) -> Span:
        start = self.initial if batch_id == 0 else self._end(batch_id - 1)
        end = self._end(batch_id)
        return Span(end.epoch, start.sequence, end.sequence)

    def planned(self) -> Position:
        """Where the newest planned batch ends; Spark runs it again unless it is in `commits`."""
        last = _newest(self.folder / "offsets")
        return self.initial if last is None else self._end(last)

    def finished(self) -> Position:
        last = self.last_finished()
        return self.initial if last is None else self._end(last)

    def last_finished(self) -> int | None:
        """The number of the newest batch that Spark knows to be done."""
        return _newest(self.folder / "commits")

    def _end(self, batch_id: int) -> Position:
        # Spark's offset log: a version line, a line about the batch, a line for each source.
        lines = (self.folder / "offsets" / str(batch_id)).read_text("utf-8").splitlines()
        return Position.of_offset(json.loads(lines[2]))


def _newest(folder: Path) -> int | None:
    if not folder.exists():
        return None
    return max((int(file.name) for file in folder.iterdir() if file.name.isdigit()), default=None)


def _create(file: Path, content: dict[str, object]) -> None:
    """Whole or not at all: half an identity would stop every later start."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f".{file.name}.{uuid.uuid4().hex}")
    with draft.open("w", encoding="utf-8") as out:
        json.dump(content, out)
        out.flush()
        os.fsync(out.fileno())
    draft.rename(file)
