"""Writes one version of a dataset out: aside, part by part, then shown in one step."""

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from deltalake import DeltaTable
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tristore.errors import NotFound, Terminal
from tristore.failpoints import failpoint
from tristore.pipeline import catalogue, export_files, exports, reading, shown, writing
from tristore.pipeline.contents import TableFile, contents
from tristore.pipeline.export_files import NOTHING, Written
from tristore.pipeline.exports import Export
from tristore.pipeline.periods import Period
from tristore.pipeline.session import PipelineConfig
from tristore.pipeline.table import Table
from tristore.pipeline.tools import Tools
from tristore.timestore.dataset import Dataset
from tristore.timestore.place import Place

_MOST_PARTS, _MOST_ATTEMPTS = 50, 3
_log = logging.getLogger(__name__)


def exports_place(config: PipelineConfig) -> Place:
    if config.upkeep.exports_root is not None:
        return Place(config.upkeep.exports_root, config.tables_options)
    if config.tables.local is not None:
        return Place(str(config.tables.local.parent / "exports"))
    return config.tables.child("_exports")


def run(tools: Tools, export: Export, stopping: Callable[[], bool] = lambda: False) -> bool:
    """Carries an export out; what goes wrong is told to whoever asked for it."""
    try:
        _run(tools, export)
        return True
    except Terminal as error:
        _fail(tools, export, str(error), for_good=True)
    except Exception:
        if stopping():
            return False  # cut off, not failed: the next driver begins it again
        _log.exception("export %d", export.id)
        told = "the export could not be written; the reason is in the pipeline's log"
        _fail(tools, export, told, for_good=export.attempts >= _MOST_ATTEMPTS)
    return False


def _fail(tools: Tools, export: Export, told: str, *, for_good: bool) -> None:
    if for_good:
        shown.drop(exports_place(tools.config), export)
    exports.fail(tools.config.database_url, export, told, for_good=for_good)


def _run(tools: Tools, export: Export) -> None:
    place = exports_place(tools.config)
    found = shown.find(place, export)
    if found is None:
        shown.make_room(place, export)
        dataset = catalogue.find(tools.config, export.dataset)
        found = _write(tools, export, dataset, place)
        shown.show(place, export, found)
    failpoint("exporting.after_rename")
    where = f"exports/{export.target}" if place.local else place.child(export.target).uri
    written = Written(found["rows"], found["bytes"], found["files"])
    exports.complete(tools.config.database_url, export, where, written, found["tableVersion"])
    failpoint("exporting.after_postgres")


def _write(tools: Tools, export: Export, dataset: Dataset, place: Place) -> dict[str, Any]:
    """Everything but the last step: nobody sees these files yet."""
    table = catalogue.table_of(tools.config, dataset)
    if not table.exists():
        raise NotFound(f"{dataset.slug} has no rows yet; ingest some and export it then")
    handle = table.place.table()
    aside = place.child(shown.aside(place, export))
    parts = _parts(contents(handle, table.partition), export)
    writer = _Writer(tools, export, dataset, handle, aside)
    written = NOTHING
    for number, files in enumerate(parts):
        written += writer.write(number, files)
        exports.tell_progress(tools.config.database_url, export, number + 1, len(parts))
    failpoint("exporting.after_write")
    told = {"exportId": export.id, "dataset": export.dataset, "format": export.format}
    return {**told, "tableVersion": handle.version(), **asdict(written)}


class _Writer:
    def __init__(
        self, tools: Tools, export: Export, dataset: Dataset, handle: DeltaTable, aside: Place
    ) -> None:
        self.tools, self.export, self.dataset = tools, export, dataset
        self.handle, self.aside = handle, aside
        self.table = catalogue.table_of(tools.config, dataset)
        self.copy = Table(dataset.slug, aside, self.table.partition)
        if export.format == "delta":
            self.copy.create(handle.schema())

    def write(self, number: int, files: Sequence[TableFile]) -> Written:
        size = sum(file.size for file in files)
        rows = self._rows(files).coalesce(
            max(1, math.ceil(size / self.tools.config.upkeep.target_bytes))
        )
        name = f"part-{number:04}"
        if self.export.format == "delta":
            return self._append(rows, name)
        return export_files.write(self._named(rows), self.aside, name, self.export.format)

    def _named(self, rows: DataFrame) -> DataFrame:
        """A column that no row has had yet is not in the table; the dataset has it all the same."""
        columns = [
            F.col(column.name)
            if column.name in rows.columns
            else F.lit(None).cast(column.type).alias(column.name)
            for column in self.dataset.columns
        ]
        return rows.select(*columns)

    def _rows(self, files: Sequence[TableFile]) -> DataFrame:
        time = F.col(self.dataset.time_column)
        rows = reading.read(self.tools.spark, self.table, self.handle.schema(), files)
        if self.export.start is not None:
            rows = rows.where(time >= F.lit(self.export.start))
        if self.export.end is not None:
            rows = rows.where(time < F.lit(self.export.end))
        return rows

    def _append(self, rows: DataFrame, name: str) -> Written:
        found = writing.write(rows, self.copy, name)
        handle = self.copy.place.table()
        handle.create_write_transaction(
            [file.action for file in found],
            mode="append",
            schema=handle.schema(),
            partition_by=[self.copy.partition],
        )
        return Written(
            sum(file.rows for file in found), sum(f.action.size for f in found), len(found)
        )


def _parts(found: dict[str, list[TableFile]], export: Export) -> list[list[TableFile]]:
    """Neighbouring partitions together, in not too many parts; at least one, be it empty."""
    chosen = [
        files for name, files in found.items() if Period.of(name).meets(export.start, export.end)
    ]
    each = max(1, math.ceil(len(chosen) / _MOST_PARTS))
    groups = [chosen[start : start + each] for start in range(0, len(chosen), each)]
    return [[file for files in group for file in files] for group in groups] or [[]]
