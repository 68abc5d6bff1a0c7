"""`tristore status`: the platform that runs on a data folder."""

import asyncio
import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from tristore.cli.options import OwnFolder
from tristore.cli.tables import of_one
from tristore.cli.up import is_ready
from tristore.config import Settings
from tristore.errors import NotFound
from tristore.local import run_file


def status(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    data_dir: OwnFolder = None,
) -> None:
    """Show the URLs, processes and readiness of the platform that runs here."""
    folder = (data_dir or Settings().data_dir).absolute()
    found = look(folder)
    if as_json:
        print(json.dumps(found))
    else:
        Console().print(_table(found))


def look(folder: Path) -> dict[str, Any]:
    run = run_file.read(folder)
    if run is None:
        raise NotFound(
            f"no platform runs on {folder}; start one with: tristore up --data-dir {folder}"
        )
    return {
        "url": run.url,
        "databaseUrl": run.database_url,
        "redisUrl": run.redis_url,
        "token": run.token_file.read_text().strip(),
        "pids": dict(run.pids),
        "ready": asyncio.run(is_ready(run.url)),
    }


def _table(found: dict[str, Any]) -> Table:
    table = of_one()
    pids = ", ".join(f"{name} {pid}" for name, pid in found["pids"].items())
    rows = {**found, "pids": pids, "ready": "yes" if found["ready"] else "not yet"}
    for name, value in rows.items():
        table.add_row(name, value)
    return table
