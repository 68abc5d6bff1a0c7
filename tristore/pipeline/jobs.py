"""The pipeline's jobs: keep the tables up to date, catch up once, tell how far they are."""

import logging
import os
import re
import signal
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Any

import psycopg
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tristore.errors import CheckpointMismatch, Transient
from tristore.pipeline import catch_up, log, source
from tristore.pipeline.checkpoint import Checkpoint
from tristore.pipeline.feeds import EVENTS, feeds
from tristore.pipeline.log import Position
from tristore.pipeline.session import PipelineConfig, make_session
from tristore.pipeline.sink import Sink
from tristore.timestore import progress

_SHORTEST_PAUSE, _LONGEST_PAUSE = 1.0, 30.0
_log = logging.getLogger(__name__)


def run(config: PipelineConfig) -> None:
    """Runs until SIGTERM, SIGINT or the end of the parent process."""
    parent = os.getppid()
    _leave_at_once_on_signals()
    spark = make_session(config)
    stop = _stop_on_signals()
    try:
        _keep_running(spark, config, stop, parent)
    finally:
        spark.stop()


def run_available(config: PipelineConfig, spark: SparkSession | None = None) -> None:
    """Reads what the log holds now and returns; makes a session of its own unless given one."""
    session = spark or make_session(config)
    try:
        query = _writer(session, config).trigger(availableNow=True).start()
        _await(query)
    finally:
        if spark is None:
            session.stop()


def status(config: PipelineConfig) -> dict[str, Any]:
    """Reads the table; starts no Spark."""
    return progress.read(Path(config.tables_root), EVENTS)


def _keep_running(
    spark: SparkSession, config: PipelineConfig, stop: threading.Event, parent: int
) -> None:
    """Starts the query again after an outage; what trying again cannot heal ends the job."""
    pause = _SHORTEST_PAUSE
    while not _ended(stop, parent):
        begun = time.monotonic()
        try:
            query = _writer(spark, config).trigger(processingTime=_every(config)).start()
            _watch(query, stop, parent)
        except (StreamingQueryException, psycopg.OperationalError, Transient) as error:
            if time.monotonic() - begun > _LONGEST_PAUSE:
                pause = _SHORTEST_PAUSE
            _log.error("the pipeline query failed, next try in %.0f s: %s", pause, error)
            stop.wait(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)


def _writer(spark: SparkSession, config: PipelineConfig) -> DataStreamWriter:
    """The line log -> tables, checked against what checkpoint and tables say of themselves."""
    head = log.head(config.database_url)
    folder = config.checkpoint / EVENTS
    checkpoint = Checkpoint.open(folder, EVENTS, Position(head.epoch, head.earliest - 1))
    head.refuse_foreign(checkpoint.planned())
    stream = spark.readStream.format(source.NAME).options(**_options(config, checkpoint)).load()
    sink = Sink(feeds(config), checkpoint, config)
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


def _watch(query: StreamingQuery, stop: threading.Event, parent: int) -> None:
    while query.isActive and not _ended(stop, parent):
        stop.wait(0.25)
    if query.isActive:
        query.stop()
    else:
        _await(query)


def _await(query: StreamingQuery) -> None:
    try:
        query.awaitTermination()
    except StreamingQueryException as error:
        # Spark hands over only the text of what was raised in its Python workers.
        if found := re.search(r"CheckpointMismatch: (.+)", str(error)):
            raise CheckpointMismatch(found.group(1)) from error
        raise


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


def _every(config: PipelineConfig) -> str:
    return f"{round(config.trigger_seconds * 1000)} milliseconds"
