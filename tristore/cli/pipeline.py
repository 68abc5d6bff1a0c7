"""`tristore pipeline`: the Spark driver as a process of its own, and how far it has come."""

import json
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape

from tristore import failpoints, observe
from tristore.cli import pipeline_export, pipeline_upkeep
from tristore.cli.options import AsJson, DataDir
from tristore.cli.pipeline_config import config_of, settings_of
from tristore.cli.tables import folding
from tristore.config import Settings

app = typer.Typer(
    help="The Spark pipeline: run, status, backfill, close, compact, export, vacuum.",
    no_args_is_help=True,
)
app.command("close")(pipeline_upkeep.close)
app.command("compact")(pipeline_upkeep.compact)
app.command("vacuum")(pipeline_upkeep.vacuum)
app.command("backfill")(pipeline_upkeep.backfill)
app.command("export")(pipeline_export.export)


# Short: eight columns have to stand beside each other.
_HEADINGS = {"tableVersion": "version", "throughSequence": "through"}


@app.command("run")
def run() -> None:
    """Keep the tables up to date with the event log until SIGTERM."""
    settings = Settings()
    observe.configure_logs("pipeline")
    failpoints.arm(settings.failpoints)
    # Imported late: pyspark takes a second to load, and every other command would pay for it.
    from tristore.pipeline import jobs

    jobs.run(config_of(settings))


@app.command("status")
def status(data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Show how far the tables have come, their lag and partitions; starts no Spark."""
    from tristore.timestore import progress
    from tristore.timestore.place import tables_place

    settings = settings_of(data_dir)
    place = tables_place(settings)
    if settings.database_url is None:
        found = [progress.read(place, "events")]
    else:
        from tristore.timestore import overview

        found = overview.read(settings.database_url, place)
    # The first table is the archive: programs that only ask how far the log came read it there.
    if as_json:
        print(json.dumps({**found[0], "datasets": found}))
    else:
        _show(found)


def _show(found: list[dict[str, Any]]) -> None:
    names = list(dict.fromkeys(name for one in found for name in one))
    table = folding(*(_HEADINGS.get(name, name) for name in names))
    for one in found:
        table.add_row(*(escape(_text(one.get(name))) for name in names))
    Console().print(table)


def _text(value: Any) -> str:
    return "none yet" if value is None else str(value)
