"""What the tables do not hold yet: rows of the log after them, and staged batches."""

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from tristore.db.queries import load
from tristore.timestore.logrows import LogRows

_sql = load("tristore.timestore", "tail.sql")

EVENTS, ACTIVITY = "events", "activity"
_SEQUENCE = {EVENTS: "ingress_sequence", ACTIVITY: "sequence"}
MOST_ROWS = 200_000
MOST_BYTES = 64 * 2**20
_MOST_BATCHES = 10_000
_MOST_CHUNKS = 64


@dataclass(frozen=True, slots=True)
class Tail:
    """The rows of `(after, through]`, every event of it whole; `cut` when the log goes on."""

    after: int
    through: int
    rows: pa.Table
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Head:
    """The log has the events of `(cut, last]`; those before are in tables, or nowhere."""

    last: int
    epoch: str
    cut: int


@dataclass(frozen=True, slots=True)
class Staged:
    """Files of batches that follow a table; `left_ms` is the age of the first one left out."""

    files: list[str]
    through: int
    left_ms: int | None = None


class LogTail:
    """Rows of the log never change, so what was read for one query is kept for the next."""

    def __init__(self, log: LogRows) -> None:
        self._log = log
        self._epoch = ""
        self._kept: dict[str, Tail] = {}

    def head(self) -> Head:
        """Asked after the tables' versions are pinned: what they lack lies before it."""
        row = self._log.read(_sql.head).to_pylist()[0]
        if row["epoch"] != self._epoch:
            self._kept, self._epoch = {}, row["epoch"]
        return Head(row["last"], row["epoch"], row["cut"])

    def read(self, feed: str, after: int, through: int) -> Tail:
        kept = self._kept.get(feed)
        if kept is None or not kept.after <= after <= kept.through:
            kept = Tail(after, after, self._fetch(feed, after, after, 0)[0])
        if after > kept.after:
            rows = kept.rows.filter(pc.greater(kept.rows[_SEQUENCE[feed]], after))
            kept = Tail(after, kept.through, rows)
        found = self._extended(feed, kept, through)
        self._kept[feed] = found
        return found

    def left_ms(self, through: int) -> int:
        """The age of the first event that is not included."""
        rows = self._log.read(_sql.age.format(sequence=through + 1)).to_pylist()
        return max(0, int(rows[0]["age"])) if rows else 0

    def _extended(self, feed: str, tail: Tail, through: int) -> Tail:
        room = MOST_ROWS - tail.rows.num_rows
        if tail.through >= through:
            return Tail(tail.after, tail.through, tail.rows)
        if room <= 0 or tail.rows.nbytes > MOST_BYTES:
            return Tail(tail.after, tail.through, tail.rows, cut=True)
        rows, cut = self._fetch(feed, tail.through, through, room)
        if cut:
            # The last event may have come in half: an import is many rows.
            last = rows[_SEQUENCE[feed]][-1].as_py()
            rows, through = rows.filter(pc.less(rows[_SEQUENCE[feed]], last)), last - 1
        whole = pa.concat_tables([tail.rows, rows])
        if whole[_SEQUENCE[feed]].num_chunks > _MOST_CHUNKS:
            whole = whole.combine_chunks()
        return Tail(tail.after, through, whole, cut)

    def _fetch(self, feed: str, after: int, through: int, room: int) -> tuple[pa.Table, bool]:
        """The rows, and whether there are more than room for them."""
        sql = getattr(_sql, feed).format(after=after, through=through, limit=room + 1)
        return _gathered(self._log.batches(sql), room)

    def staged(self, folder: str, after: int) -> Staged:
        sql = _sql.staged.format(limit=_MOST_BATCHES + 1)
        found, rows = Staged([], after), 0
        for number, batch in enumerate(self._log.read(sql, folder, after).to_pylist()):
            rows += batch["rows"]
            if number == _MOST_BATCHES or (rows > MOST_ROWS and found.files):
                return Staged(found.files, found.through, max(0, batch["age"]))
            found = Staged([*found.files, batch["file"]], batch["id"])
        return found


def _gathered(batches: Iterable[pa.RecordBatch], room: int) -> tuple[pa.Table, bool]:
    found: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        found.append(batch)
        size += batch.nbytes
        if size > MOST_BYTES:
            return pa.Table.from_batches(found), True
    table = pa.Table.from_batches(found)
    return table, table.num_rows > room
