"""How the pipeline's commands find their database, tables and Java."""

from pathlib import Path
from typing import TYPE_CHECKING

from tristore.config import Settings
from tristore.errors import StartRefused
from tristore.local import run_file

if TYPE_CHECKING:
    from tristore.pipeline.session import PipelineConfig


def settings_of(data_dir: Path | None) -> Settings:
    """The environment's, completed by what a platform that runs on the data folder says."""
    settings = Settings()
    if data_dir is not None:
        settings = settings.model_copy(update={"data_dir": data_dir})
    if settings.database_url is None and (run := run_file.read(settings.data_dir)):
        settings = settings.model_copy(update={"database_url": run.database_url})
    return settings


def database_of(settings: Settings) -> str:
    if settings.database_url is None:
        raise StartRefused(
            "TRISTORE_DATABASE_URL is not set and no platform runs here; set it, or run "
            "`tristore up`, which brings its own database and pipeline"
        )
    return settings.database_url


def config_of(settings: Settings) -> "PipelineConfig":
    # Imported late: pyspark takes a second to load, and every other command would pay for it.
    from tristore.local.java import java_home
    from tristore.pipeline.session import PipelineConfig
    from tristore.pipeline.upkeep import Upkeep

    folder = settings.data_dir.absolute() / "pipeline"
    given = settings.timestore
    return PipelineConfig(
        database_url=database_of(settings),
        tables_root=settings.tables_root(),
        tables_options=settings.tables_options(),
        checkpoint=folder / "checkpoint",
        java_home=str(java_home(settings.java_home, folder / "java")),
        master=settings.spark_master,
        driver_memory=settings.spark_driver_memory,
        trigger_seconds=given.trigger_seconds,
        max_events_per_trigger=given.max_events_per_trigger,
        filestore_sync=given.filestore_sync,
        growth_depth=given.growth_depth,
        max_ingest_rows_per_trigger=given.max_ingest_rows_per_trigger,
        staged_keep_seconds=given.staged_keep_seconds,
        upkeep=Upkeep(
            seconds=given.lifecycle_seconds,
            compact_files=given.compact_files,
            target_bytes=given.target_file_bytes,
            keep_hours=given.vacuum_keep_hours,
            vacuum_seconds=given.vacuum_hours * 3600,
            exports_root=given.exports_root,
        ),
    )
