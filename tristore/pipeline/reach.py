"""Before the stream starts: every executor reaches the tables, and their store keeps promises."""

import socket
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path

from pyspark.sql import SparkSession

from tristore.errors import StartRefused, Unavailable
from tristore.pipeline import s3_files
from tristore.pipeline.session import PipelineConfig
from tristore.timestore.place import Place


def check(spark: SparkSession, config: PipelineConfig) -> None:
    if config.tables.local is None:
        refuse_store_without_conditions(config.tables)
    elif not config.master.startswith("local"):
        refuse_blind_executors(spark, config.tables.local)


def refuse_blind_executors(spark: SparkSession, folder: Path) -> None:
    """The driver leaves a marker; what an executor wrote into a folder of the same name on a disk
    of its own would never come to light."""
    marker = folder / f".seen-by-all-{uuid.uuid4().hex}"
    folder.mkdir(parents=True, exist_ok=True)
    marker.touch()
    try:
        blind = sorted(_hosts_without(spark, str(marker)))
    finally:
        marker.unlink()
    if blind:
        raise StartRefused(
            f"executors on {', '.join(blind)} do not see what the driver writes to {folder}: mount "
            "the same folder there, or set TRISTORE_TIMESTORE__ROOT to one that all share or to "
            "s3://bucket/prefix"
        )


def refuse_store_without_conditions(tables: Place) -> None:
    """A Delta commit is an object made where none was: a store that overwrites loses commits."""
    import obstore
    from obstore.exceptions import AlreadyExistsError, BaseError

    store, name = s3_files.store(tables.uri, tables.options), f".probe-{uuid.uuid4().hex}"
    try:
        obstore.put(store, name, b"first", mode="create")
        try:
            obstore.put(store, name, b"second", mode="create")
        except AlreadyExistsError:
            return
        finally:
            obstore.delete(store, name)
    except BaseError as error:
        raise Unavailable(
            f"the tables' bucket cannot be written: {type(error).__name__}"
        ) from error
    raise StartRefused(
        f"the S3 server of {tables.uri} overwrites objects it was told to create, so two writers "
        "would lose each other's commits; use one that obeys If-None-Match"
    )


def _hosts_without(spark: SparkSession, marker: str) -> set[str]:
    """Looked for in a task for each core, all at once, so that no executor is spared.

    One that registers later is found out by the rows its files lack when a batch is counted.
    """
    context = spark.sparkContext
    # The cores are known once there are executors, for which the first job waits.
    context.parallelize([0], 1).count()
    slots = context.defaultParallelism
    tasks = context.parallelize(range(slots), slots)

    def look(_: Iterable[int]) -> Iterator[str]:
        if not Path(marker).exists():
            yield socket.gethostname()

    if context.getConf().get("spark.dynamicAllocation.enabled") == "true":
        return set(tasks.mapPartitions(look).collect())
    return set(tasks.barrier().mapPartitions(look).collect())
