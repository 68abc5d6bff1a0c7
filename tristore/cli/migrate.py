"""`tristore migrate`: the database to the newest schema."""

import json
from typing import Annotated

import typer

from tristore.config import Settings
from tristore.db import migrate as database
from tristore.errors import StartRefused


def migrate(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Bring the database to the newest schema; safe to run twice."""
    settings = Settings()
    if settings.database_url is None:
        raise StartRefused("TRISTORE_DATABASE_URL is not set; `tristore up` migrates by itself")
    revision = database.migrate(settings.database_url)
    print(json.dumps({"revision": revision}) if as_json else f"database is at {revision}")
