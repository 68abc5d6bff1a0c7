"""The views a query reads: one pinned version of each table, and what came after it."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tristore.errors import TableDamaged
from tristore.timestore import growth_tail, tail, views
from tristore.timestore.integrity import Integrity, damaged
from tristore.timestore.place import Place
from tristore.timestore.requests import Source
from tristore.timestore.snapshot import Snapshot, Tables, remote_files, sql_type
from tristore.timestore.tail import Head, LogTail, Staged, Tail

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_GROWTH = "filestore_growth"
# The rows of the log from which the tail of each of its tables is made.
_FEEDS = {"events": tail.EVENTS, "filestore_activity": tail.ACTIVITY, _GROWTH: tail.ACTIVITY}
_SEQUENCE = {"events": "ingress_sequence", "filestore_activity": "sequence"}
# Why the others may stand behind although nothing is lost.
_BY_CHOICE = (
    "; where TRISTORE_TIMESTORE__FILESTORE_SYNC is false, set it to true and run the pipeline, "
    "which brings what is missing from `events`"
)
_PARTITION = {"events": "day", "filestore_activity": "day", _GROWTH: "month"}


@dataclass(slots=True)
class Offer:
    """`files` are all that may be opened; `meta` is what the answer rests on."""

    meta: dict[str, Any]
    files: list[str] = field(default_factory=list)
    owners: dict[str, str] = field(default_factory=dict)

    def table_in(self, message: str) -> str | None:
        """The table one of whose files an error names."""
        return next((name for path, name in self.owners.items() if path in message), None)

    def add(self, table: str, paths: list[str]) -> None:
        self.files += paths
        self.owners |= dict.fromkeys(paths, table)


@dataclass(frozen=True, slots=True)
class _Reach:
    """How far a source's rows go, and how old the first one is that is left out."""

    through: int
    left_ms: int | None = None


class Offers:
    def __init__(self, root: Place, log: LogTail, growth_depth: int) -> None:
        self.root = root
        self._tables = Tables(root)
        self._integrity = Integrity()
        self._log = log
        self._depth = growth_depth

    def forget(self, source: Source) -> None:
        self._tables.forget(source.folder)

    def make(self, conn: "DuckDBPyConnection", sources: list[Source]) -> Offer:
        """Versions are pinned before the log is read: a row is in the table or after it."""
        pinned = [(source, self._pinned(source)) for source in sources]
        offer = Offer({"tableVersion": {s.name: t.version if t else None for s, t in pinned}})
        feeds = self._tails(pinned)
        for name, rows in feeds.items():
            conn.register(f"tail_{name}", rows.rows)
        reached = {
            source.name: self._view(conn, offer, source, table, feeds) for source, table in pinned
        }
        offer.meta |= _told(sources, reached)
        return offer

    def _pinned(self, source: Source) -> Snapshot | None:
        table = self._tables.read(source.folder, source.name)
        if table and source.columns and not table.columns.keys() <= _known_columns(source, table):
            raise damaged(source.name)
        return table

    def _tails(self, pinned: list[tuple[Source, Snapshot | None]]) -> dict[str, Tail]:
        """One read of the log for all tables made from the same rows."""
        after: dict[str, int] = {}
        for source, table in pinned:
            if source.kind == "log":
                feed, through = _FEEDS[source.folder], table.through if table else 0
                after[feed] = min(after.get(feed, through), through)
        if not after:
            return {}
        head = self._log.head()
        found = {feed: self._log.read(feed, low, head.last) for feed, low in after.items()}
        # Asked again after a read: what was cut from the log meanwhile may be lacking.
        _refuse_gaps(pinned, self._log.head() if min(after.values()) < head.last else head)
        return found

    def _view(
        self,
        conn: "DuckDBPyConnection",
        offer: Offer,
        source: Source,
        table: Snapshot | None,
        feeds: dict[str, Tail],
    ) -> _Reach:
        parts = self._table(conn, offer, source, table)
        if source.kind == "log":
            rows = feeds[_FEEDS[source.folder]]
            columns = table.columns if table else _columns_of(source)
            parts.append(self._log_rows(source, table, columns))
            reach = _Reach(rows.through, self._log.left_ms(rows.through) if rows.cut else None)
        else:
            columns = {name: sql_type(kind) for name, kind in source.columns.items()}
            staged = self._log.staged(source.folder, table.through if table else 0)
            parts += self._staged(conn, offer, source, staged)
            # Columns that no file has yet are there all the same.
            parts.append(views.nothing_sql(columns))
            reach = _Reach(staged.through, staged.left_ms)
        conn.execute(views.view_sql(source, columns, parts))
        return reach

    def _table(
        self, conn: "DuckDBPyConnection", offer: Offer, source: Source, table: Snapshot | None
    ) -> list[str]:
        if table is None:
            return []
        if table.place.local is None:
            # DuckDB has no S3 of its own here; it hands its filters on to this.
            conn.register(f"table_{source.name}", table.handle.to_pyarrow_dataset())
            return [f"SELECT * FROM {views.quoted('table_' + source.name)}"]
        files = table.files(source.time_column, source.after, source.before)
        if not files:
            return []
        self._integrity.check(source.name, files)
        paths = [file.path for file in files]
        offer.add(source.name, paths)
        evolving = source.kind == "ingest" and not table.uniform
        return [views.files_sql(paths, table.partitions, evolving=evolving)]

    def _log_rows(self, source: Source, table: Snapshot | None, columns: dict[str, str]) -> str:
        through = table.through if table else 0
        if source.folder == _GROWTH:
            rows = f"(SELECT * FROM tail_{tail.ACTIVITY} WHERE sequence > {through})"
            return growth_tail.tail_sql(rows, self._depth)
        found = views.tail_sql(f"tail_{_FEEDS[source.folder]}", columns, source.time_column)
        return f"{found} WHERE {_SEQUENCE[source.folder]} > {through}"

    def _staged(
        self, conn: "DuckDBPyConnection", offer: Offer, source: Source, staged: Staged
    ) -> list[str]:
        if not staged.files:
            return []
        if self.root.local is None:
            found = remote_files(self.root, staged.files, source.columns)
            conn.register(f"staged_{source.name}", found)
            return [f"SELECT * FROM {views.quoted('staged_' + source.name)}"]
        paths = [self.root.file(file) for file in staged.files]
        offer.add(source.name, paths)
        return [views.files_sql(paths, [], evolving=True)]


def _refuse_gaps(pinned: list[tuple[Source, Snapshot | None]], head: Head) -> None:
    """A table that ends before the log begins: an answer would be a part, and not say so."""
    for source, table in pinned:
        through = table.through if table else 0
        if source.kind == "log" and through < head.cut:
            raise TableDamaged(
                f"table {source.folder} ends at event {through}, and the log begins at "
                f"{head.cut + 1}: is the tables' disk mounted? If it is, restore the table from a "
                f"backup{_BY_CHOICE if source.folder != 'events' else ''}"
            )


def _known_columns(source: Source, table: Snapshot) -> set[str]:
    """A table has no column that the catalogue has not had before it."""
    return {*source.columns, *table.partitions}


def _columns_of(source: Source) -> dict[str, str]:
    """Of a table that has not begun."""
    found = {name: sql_type(kind) for name, kind in source.columns.items()}
    return {**found, _PARTITION[source.folder]: "VARCHAR"}


def _told(sources: list[Source], reached: dict[str, _Reach]) -> dict[str, Any]:
    """Of several tables the one that is furthest behind counts; the log's before others."""
    log = [reached[source.name] for source in sources if source.kind == "log"]
    counted = log or list(reached.values())
    left = [reach.left_ms for reach in reached.values() if reach.left_ms is not None]
    return {
        "throughSequence": min((reach.through for reach in counted), default=None),
        "freshnessMs": max(left, default=0),
        "tailTruncated": bool(left),
    }
