"""The upkeep of all tables, a round at a time, beside the streams of the same driver."""

import logging
import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial

import psycopg
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tristore.errors import TristoreError
from tristore.pipeline import actions, catalogue, closing, exporting, exports, requests
from tristore.pipeline.catalogue import Mark, table_of
from tristore.pipeline.compaction import compact
from tristore.pipeline.locks import TableLocks
from tristore.pipeline.requests import Request
from tristore.pipeline.retention import retain
from tristore.pipeline.session import PipelineConfig
from tristore.pipeline.tools import Tools
from tristore.pipeline.vacuum import vacuum, vacuum_deleted
from tristore.timestore import root
from tristore.timestore.dataset import Dataset

_MOST_ATTEMPTS = 3
# Fed from the log only while the setting says so; when off, they hold all they are going to.
_BY_CHOICE = ("filestore_activity", "filestore_growth")
_log = logging.getLogger(__name__)


class Lifecycle:
    def __init__(
        self, spark: SparkSession, config: PipelineConfig, locks: TableLocks | None = None
    ) -> None:
        self._tools = Tools(spark, config, locks or TableLocks())
        self._marks: dict[str, Mark] = {}
        self._reached: dict[str, datetime] = {}
        # By folder: a dataset made anew begins with version 0 again.
        self._looked: dict[str, tuple[int, datetime | None]] = {}
        self._next_retention = 0.0
        # Not at the start: a driver that is started again and again has better things to do.
        self._next_vacuum = time.monotonic() + config.upkeep.vacuum_seconds
        self._resumed = False
        self._stop = threading.Event()

    def run(self, stop: threading.Event) -> None:
        self._stop = stop
        while not stop.wait(self._tools.config.upkeep.seconds):
            self._attempt("a round", self.step)

    def step(self) -> None:
        """One round: what was asked for, then what is due. Whatever fails is tried again."""
        config = self._tools.config
        # Without its disk a dataset seems to have no table, and its exports would be given up.
        root.check(config.database_url, config.tables)
        if not self._resumed:
            requests.resume(config.database_url)
            exports.resume(config.database_url)
            self._resumed = True
        mark = catalogue.mark(config)
        known = catalogue.datasets(config)
        found = [one for one in known if table_of(config, one).exists()]
        for dataset in found:
            self._attempt(f"upkeep of {dataset.slug}", partial(self._keep, dataset, mark))
        self._attempt("requests", self._requests)
        # A dataset for which nothing was ever told has no table: its export says so.
        without = [one for one in known if one not in found]
        empty = {one.slug: mark.at for one in without if self._has_all(one, None, mark)}
        self._attempt("exports", partial(self._exports, empty))
        self._occasionally(found, mark)

    def _keep(self, dataset: Dataset, mark: Mark) -> None:
        handle = table_of(self._tools.config, dataset).place.table()
        self._remember(dataset, handle, mark)
        reached = self._reached.get(dataset.slug)
        version, end = self._looked.get(dataset.folder, (-1, None))
        late = timedelta(seconds=dataset.lateness_seconds)
        due = end is not None and reached is not None and end <= reached - late
        if version == handle.version() and not due:
            return
        if reached is None:
            closing.observe(self._tools, dataset, handle)
        else:
            closing.close_due(self._tools, dataset, reached)
        compact(self._tools, dataset)
        self._looked[dataset.folder] = (handle.version(), closing.next_end(self._tools, dataset))

    def _remember(self, dataset: Dataset, handle: DeltaTable, mark: Mark) -> None:
        """Rows come all the time: a table need only hold what was there at an earlier mark."""
        waiting = self._marks.setdefault(dataset.slug, mark)
        if self._has_all(dataset, handle, waiting):
            self._reached[dataset.slug] = waiting.at
            self._marks[dataset.slug] = mark

    def _has_all(self, dataset: Dataset, handle: DeltaTable | None, mark: Mark) -> bool:
        config = self._tools.config
        unfed = dataset.slug in _BY_CHOICE and not config.filestore_sync
        return unfed or catalogue.holds(config, dataset, handle, mark)

    def _requests(self) -> None:
        url = self._tools.config.database_url
        while not self._stop.is_set() and (request := requests.take(url)) is not None:
            self._answer(request)

    def _answer(self, request: Request) -> None:
        url = self._tools.config.database_url
        progress = partial(requests.tell_progress, url, request)
        try:
            if request.attempts > _MOST_ATTEMPTS:
                raise TristoreError("the driver ended each time it worked on this")
            result = actions.act(self._tools, request.action, request.arguments, progress)
            requests.finish(url, request, result)
        except TristoreError as error:
            requests.finish(url, request, None, str(error))
        except Exception:
            if self._stop.is_set():
                return  # cut off, not failed: the next driver begins it again
            _log.exception("%s, as asked", request.action)
            requests.finish(url, request, None, "it failed; the reason is in the pipeline's log")

    def _exports(self, empty: dict[str, datetime]) -> None:
        url = self._tools.config.database_url
        while (export := exports.take(url, {**empty, **self._reached})) is not None:
            if not exporting.run(self._tools, export, self._stop.is_set):
                return  # not at once again: whatever is in its way may need a moment

    def _occasionally(self, found: list[Dataset], mark: Mark) -> None:
        now, upkeep = time.monotonic(), self._tools.config.upkeep
        if now >= self._next_retention:
            self._next_retention = now + upkeep.retention_seconds
            for dataset in found:
                retaining = partial(retain, self._tools, dataset, mark.at)
                self._attempt(f"retention of {dataset.slug}", retaining)
        if now >= self._next_vacuum:
            self._next_vacuum = now + upkeep.vacuum_seconds
            for dataset in found:
                self._attempt(f"vacuum of {dataset.slug}", partial(vacuum, self._tools, dataset))
            self._attempt("vacuum", partial(vacuum_deleted, self._tools))

    def _attempt(self, what: str, work: Callable[[], object]) -> None:
        """One table in trouble must not keep the others from being looked after."""
        try:
            work()
        except (psycopg.OperationalError, TristoreError) as error:
            _log.warning("%s: %s", what, error)
        except Exception:
            # A session that is being closed fails whatever runs on it.
            if not self._stop.is_set():
                _log.exception("%s", what)
