"""The pipeline's jobs: keep the tables up to date, catch up once, tell how far they are."""

import os
import signal
import threading
from types import FrameType
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tristore.pipeline import catch_up, log, reach, source
from tristore.pipeline.checkpoint import Checkpoint
from tristore.pipeline.feeds import EVENTS, feeds
from tristore.pipeline.lifecycle import Lifecycle
from tristore.pipeline.locks import TableLocks
from tristore.pipeline.log import Position
from tristore.pipeline.session import PipelineConfig, make_session
from tristore.pipeline.sink import Sink
from tristore.pipeline.staged import STAGED, staged_writer
from tristore.pipeline.supervision import Line, drain
from tristore.timestore import progress, root


def run(config: PipelineConfig) -> None:
    """Runs until SIGTERM, SIGINT or the end of the parent process."""
    parent = os.getppid()
    _leave_at_once_on_signals()
    spark = make_session(config)
    stop = _stop_on_signals()
    locks = TableLocks()
    lifecycle = Lifecycle(spark, config, locks)
    threading.Thread(target=lifecycle.run, args=(stop,), name="lifecycle", daemon=True).start()
    try:
        _drive(_lines(spark, config, locks), stop, parent)
    finally:
        stop.set()
        spark.stop()


def run_available(config: PipelineConfig, spark: SparkSession | None = None) -> None:
    """Reads what the log holds now and returns; makes a session of its own unless given one."""
    session = spark or make_session(config)
    try:
        drain(lambda: _writer(session, config, TableLocks()))
    finally:
        if spark is None:
            session.stop()


def status(config: PipelineConfig) -> dict[str, Any]:
    """Reads the table; starts no Spark."""
    return progress.read(config.tables, EVENTS)


def _lines(spark: SparkSession, config: PipelineConfig, locks: TableLocks) -> list[Line]:
    """Every query of the driver, on the one session."""
    every = config.trigger_seconds
    return [
        Line(EVENTS, lambda: _writer(spark, config, locks), every),
        Line(STAGED, lambda: staged_writer(spark, config, locks), every),
    ]


def _drive(lines: list[Line], stop: threading.Event, parent: int) -> None:
    while not _ended(stop, parent):
        for line in lines:
            line.step()
        stop.wait(0.25)
    for line in lines:
        line.stop()


def _writer(spark: SparkSession, config: PipelineConfig, locks: TableLocks) -> DataStreamWriter:
    """The line log -> tables, checked against what checkpoint and tables say of themselves."""
    root.check(config.database_url, config.tables)
    reach.check(spark, config)
    head = log.head(config.database_url)
    folder = config.checkpoint / EVENTS
    checkpoint = Checkpoint.open(folder, EVENTS, Position(head.epoch, head.earliest - 1))
    head.refuse_foreign(checkpoint.planned())
    stream = spark.readStream.format(source.NAME).options(**_options(config, checkpoint)).load()
    sink = Sink(feeds(config), checkpoint, config, locks)
    for feed in sink.feeds:
        catch_up.prepare(spark, sink, feed)
    writer = stream.writeStream.queryName(EVENTS).option("checkpointLocation", str(folder))
    log.record(config.database_url, checkpoint.finished())
    return writer.foreachBatch(sink)


def _options(config: PipelineConfig, checkpoint: Checkpoint) -> dict[str, str]:
    return source.Options(
        database_url=config.database_url,
        max_events=config.max_events_per_trigger,
        partition_rows=config.partition_rows,
        initial=checkpoint.initial.sequence,
    ).as_strings()


def _ended(stop: threading.Event, parent: int) -> bool:
    """Also when the parent is gone: a driver nobody supervises would block the next one."""
    return stop.is_set() or os.getppid() != parent


def _leave_at_once_on_signals() -> None:
    """Until the query runs there is nothing to close: the JVM goes when this process goes.

    No exception: it would have PySpark remove the file over which the JVM reports, and a JVM
    that cannot report never comes to look whether we are still there.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os._exit(0))


def _stop_on_signals() -> threading.Event:
    stop = threading.Event()

    def handle(_signal: int, _frame: FrameType | None) -> None:
        stop.set()

    signal.signal(signal.SIGTERM, handle)
    signal.signal(signal.SIGINT, handle)
    return stop
