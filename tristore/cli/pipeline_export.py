"""`tristore pipeline export`: a dataset as files, by the driver or here, without the API."""

import json
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from tristore.cli.counting import counted
from tristore.cli.fs_progress import counts_bar
from tristore.cli.options import AsJson, DataDir, ExportFormat, RowsFrom, RowsTo, Slug
from tristore.cli.patience import Patience
from tristore.cli.pipeline_config import config_of, database_of, settings_of
from tristore.cli.pipeline_upkeep import Here, moment
from tristore.errors import Terminal


def export(
    dataset: Slug,
    format: ExportFormat = "parquet",
    target: Annotated[str | None, typer.Option(help="Name below the exports' folder.")] = None,
    since: RowsFrom = None,
    until: RowsTo = None,
    here: Here = False,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Write a dataset out as files."""
    from tristore.pipeline import exports

    settings = settings_of(data_dir)
    url = database_of(settings)
    bounds = (moment(since, "--from"), moment(until, "--to"))
    number = exports.queue(url, dataset, format, target, bounds)
    with counts_bar(f"export {number}", quiet=as_json) as look:
        if here:
            _run_here(config_of(settings), dataset, number)
        found = _follow(url, number, look)
    if found["state"] == "failed":
        raise Terminal(str(found["error"]))
    if as_json:
        print(json.dumps(found))
    else:
        counts = ", ".join(counted(found[f"{noun}s"], noun) for noun in ("row", "file", "byte"))
        print(f"{found['target']}: {counts}")


def _run_here(config: Any, dataset: str, number: int) -> None:
    from tristore.pipeline import exporting, exports
    from tristore.pipeline.session import make_session
    from tristore.pipeline.tools import Tools

    _tell_what_is_left_out(config, dataset)
    spark = make_session(config)
    try:
        while (claimed := exports.claim(config.database_url, number)) is not None:
            exporting.run(Tools(spark, config), claimed)
    finally:
        spark.stop()


def _tell_what_is_left_out(config: Any, slug: str) -> None:
    """Nobody waits here for rows that only the driver brings."""
    from tristore.pipeline import catalogue

    dataset, mark = catalogue.find(config, slug), catalogue.mark(config)
    table = catalogue.table_of(config, dataset)
    if table.exists() and not catalogue.holds(config, dataset, table.place.table(), mark):
        print(
            f"{slug} has rows that are not in its table yet; they are left out. A running pipeline "
            "would bring them first",
            file=sys.stderr,
        )


def _follow(url: str, number: int, look: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    from tristore.pipeline import exports

    patience = Patience(f"export {number}")
    while (found := exports.state(url, number))["state"] in ("queued", "running"):
        look(found)
        patience.pause()
    return found
