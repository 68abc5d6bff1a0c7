"""`tristore pipeline`: the Spark driver as a process of its own, and how far it has come."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tristore import failpoints, observe
from tristore.config import Settings
from tristore.errors import StartRefused

if TYPE_CHECKING:
    from tristore.pipeline.session import PipelineConfig

app = typer.Typer(help="The Spark pipeline from the event log to the tables.", no_args_is_help=True)


@app.command("run")
def run() -> None:
    """Keep the tables up to date with the event log until SIGTERM."""
    settings = Settings()
    observe.configure_logs("pipeline")
    failpoints.arm(settings.failpoints)
    # Imported late: pyspark takes a second to load, and every other command would pay for it.
    from tristore.local.java import java_home
    from tristore.pipeline import jobs

    folder = settings.data_dir.absolute() / "pipeline"
    java = java_home(settings.java_home, folder / "java")
    jobs.run(_config(settings, folder, java))


@app.command("status")
def status(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Show how far the tables have come; needs neither Spark nor the database."""
    from tristore.timestore import progress

    found = progress.read(Path(Settings().tables_root()), "events")
    if as_json:
        print(json.dumps(found))
    else:
        for name, value in found.items():
            print(f"{name:<16} {'none yet' if value is None else value}")


def _config(settings: Settings, folder: Path, java: Path) -> "PipelineConfig":
    from tristore.pipeline.session import PipelineConfig

    if settings.database_url is None:
        raise StartRefused(
            "TRISTORE_DATABASE_URL is not set; set it, or run `tristore up`, "
            "which brings its own database and pipeline"
        )
    return PipelineConfig(
        database_url=settings.database_url,
        tables_root=settings.tables_root(),
        checkpoint=folder / "checkpoint",
        java_home=str(java),
        master=settings.spark_master,
        driver_memory=settings.spark_driver_memory,
        trigger_seconds=settings.timestore.trigger_seconds,
        max_events_per_trigger=settings.timestore.max_events_per_trigger,
        filestore_sync=settings.timestore.filestore_sync,
        growth_depth=settings.timestore.growth_depth,
    )
