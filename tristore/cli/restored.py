"""`tristore restored`: after Postgres was put back from a backup."""

import json
from typing import Annotated

import typer

from tristore.cli.database import with_connection
from tristore.cli.options import AsJson, DataDir
from tristore.db import epochs

_ASK = (
    "Everyone who reads the log begins again, or is told to, and the pipeline makes its tables "
    "anew. Go on?"
)


def restored(
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Say that Postgres was put back from a backup: numbers given out after the backup was made
    will be given out again, so the log and the ingests get a new epoch."""
    if not yes:
        typer.confirm(_ASK, abort=True)
    found = with_connection(data_dir, epochs.renew)
    if as_json:
        print(json.dumps(found))
    else:
        print(f"the log's epoch is {found['log']}, that of ingests {found['ingests']}")
