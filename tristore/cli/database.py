"""How an operator's command finds the database, and a connection to it."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from tristore.cli.client import running
from tristore.config import Settings
from tristore.db.pool import Connection
from tristore.errors import Unavailable

T = TypeVar("T")


def database_url(data_dir: Path | None) -> str:
    """TRISTORE_DATABASE_URL, or that of the platform that runs on the data folder."""
    settings = Settings()
    if settings.database_url is not None and data_dir is None:
        return settings.database_url
    return running((data_dir or settings.data_dir).absolute()).database_url


def with_connection(data_dir: Path | None, work: Callable[[Connection], Awaitable[T]]) -> T:
    """Runs `work` in one transaction."""
    return asyncio.run(_run(database_url(data_dir), work))


async def _run(url: str, work: Callable[[Connection], Awaitable[T]]) -> T:
    import psycopg

    try:
        conn = await psycopg.AsyncConnection.connect(
            url, application_name="tristore-cli", connect_timeout=5
        )
    except psycopg.OperationalError as error:
        reason = str(error).strip().splitlines()[-1]
        raise Unavailable(f"Postgres does not answer: {reason}") from None
    async with conn:
        return await work(conn)
