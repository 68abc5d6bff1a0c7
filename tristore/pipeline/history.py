"""Any part of the log's history as rows: from the log, and below its earliest from the archive."""

from dataclasses import dataclass, replace
from datetime import datetime

import psycopg
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tristore.db.queries import load
from tristore.errors import InvalidRequest
from tristore.pipeline import archive, catalogue, log, reading, source
from tristore.pipeline.checkpoint import Span
from tristore.pipeline.contents import contents
from tristore.pipeline.feeds import EVENTS, frame
from tristore.pipeline.periods import Period
from tristore.pipeline.tools import Tools

_sql = load("tristore.pipeline", "history.sql")


@dataclass(frozen=True, slots=True)
class Range:
    """Events of `(after, through]` that occurred in `[start, end)`; None: no bound."""

    after: int = 0
    through: int | None = None
    start: datetime | None = None
    end: datetime | None = None

    def until(self, through: int) -> "Range":
        """Cut at what a table holds: the rest is the stream's to bring."""
        bound = through if self.through is None else min(self.through, through)
        return replace(self, through=bound)

    def filter(self, rows: DataFrame, sequence: str) -> DataFrame:
        found = rows.where(F.col(sequence) > self.after)
        if self.through is not None:
            found = found.where(F.col(sequence) <= self.through)
        if self.start is not None:
            found = found.where(F.col("occurred_at") >= F.lit(self.start))
        if self.end is not None:
            found = found.where(F.col("occurred_at") < F.lit(self.end))
        return found


def events(tools: Tools, wanted: Range) -> DataFrame:
    """As the log has them; what it no longer keeps, as the archive has it."""
    logged = _logged(tools, wanted, source.NAME)
    kept = _archived(tools, wanted).select(*logged.columns)
    return wanted.filter(kept.unionByName(logged), "ingress_sequence")


def activity(tools: Tools, wanted: Range) -> DataFrame:
    logged = _logged(tools, wanted, source.ACTIVITY)
    kept = wanted.filter(_archived(tools, wanted), "ingress_sequence")
    told = archive.activity(kept, tools.config.database_url)
    return wanted.filter(told.unionByName(logged), "sequence")


def refuse_gaps(tools: Tools, slug: str) -> None:
    """What neither log nor archive has any more would vanish from a table made of both."""
    lost = log.head(tools.config.database_url).earliest - 1
    if not lost:
        return
    rows = _archived(tools, Range()).where(F.col("ingress_sequence") <= lost)
    found = rows.select(F.count_distinct("ingress_sequence")).first()
    kept = 0 if found is None else int(found[0])
    if kept < lost:
        raise InvalidRequest(
            f"{slug} stays as it is: the log no longer has events 1 to {lost}, and `events` has "
            f"only {kept} of them (a retention?), so what {slug} tells of the others would be "
            "lost; restore `events` from a backup first, or restore the table itself"
        )


def _logged(tools: Tools, wanted: Range, format: str) -> DataFrame:
    head = log.head(tools.config.database_url)
    after = max(wanted.after, head.earliest - 1)
    through = head.last if wanted.through is None else wanted.through
    if wanted.start is not None or wanted.end is not None:
        first, last = _span_of_time(tools, wanted)
        after, through = max(after, first), min(through, last)
    span = Span(head.epoch, after, max(after, through))
    return frame(tools.spark, tools.config, format, span)


def _archived(tools: Tools, wanted: Range) -> DataFrame:
    """The archive's rows below the log's earliest event, in the days that are asked for."""
    dataset = catalogue.find(tools.config, EVENTS)
    table = catalogue.table_of(tools.config, dataset)
    handle = table.place.table()
    earliest = log.head(tools.config.database_url).earliest
    found = contents(handle, table.partition) if earliest > wanted.after + 1 else {}
    files = [
        file
        for day, listed in found.items()
        if Period.of(day).meets(wanted.start, wanted.end)
        for file in listed
    ]
    rows = reading.read(tools.spark, table, handle.schema(), files)
    return rows.where(F.col("ingress_sequence") < earliest)


def _span_of_time(tools: Tools, wanted: Range) -> tuple[int, int]:
    given = {"start": wanted.start, "end": wanted.end}
    with psycopg.connect(tools.config.database_url) as conn:
        row = conn.execute(_sql.span_of_time, given).fetchone()
    assert row is not None
    return int(row[0]), int(row[1])
