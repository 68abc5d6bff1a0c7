"""Where the timestore's tables lie on an S3 server, as settings and the environment make it."""

from uuid import uuid4

import pytest

from tests.support.s3 import S3Server
from tristore.config import Settings, TimestoreSettings
from tristore.timestore.place import Place, tables_place


def own_place(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Place:
    """One that no other test has."""
    for name, value in server.environment("TABLES").items():
        monkeypatch.setenv(name, value)
    given = TimestoreSettings(
        root=f"s3://{server.bucket}/own/{uuid4().hex}",
        s3_endpoint=server.url,
        s3_credentials="env:TABLES",
    )
    return tables_place(Settings(timestore=given))
