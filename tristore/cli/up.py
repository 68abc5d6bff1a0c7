"""`tristore up`: the whole platform on one machine, with embedded servers."""

import asyncio
import logging
import sys
from pathlib import Path
from typing import Annotated, Any

import httpx
import typer

from tristore import observe
from tristore.cli.options import OwnFolder
from tristore.config import INLINE, Settings
from tristore.db.pool import make_pool
from tristore.local import private_file
from tristore.local.part import Part
from tristore.local.run_file import Run
from tristore.local.stack import Hooks, Stack
from tristore.tokens import SCOPES, Tokens, create


def up(
    data_dir: OwnFolder = None,
    host: Annotated[str | None, typer.Option(help="Address the API listens on.")] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Port of the API; 0: any free one.")
    ] = None,
    no_pipeline: Annotated[
        bool, typer.Option("--no-pipeline", help="Leave out the Spark pipeline.")
    ] = False,
) -> None:
    """Run the whole platform here; Ctrl-C stops all of it."""
    given: dict[str, Any] = {"data_dir": data_dir, "host": host, "port": port}
    settings = Settings(**{name: value for name, value in given.items() if value is not None})
    observe.configure_logs("up")
    # One line per poll of /readyz would bury the few lines that matter.
    logging.getLogger("httpx").setLevel(logging.WARNING)
    hooks = Hooks(make_operator_token, announce)
    asyncio.run(Stack(settings, parts(settings, pipeline=not no_pipeline), hooks).run())


def parts(settings: Settings, *, pipeline: bool) -> list[Part]:
    chosen = {"api": ["serve"], "relay": ["work", "relay"]}
    if settings.redis_url != INLINE:
        chosen["ingress"] = ["work", "ingress"]
    chosen |= {name: ["work", name] for name in ("reconcile", "watch")}
    if settings.metastore.filestore_sync:
        chosen["sync"] = ["work", "sync"]
    if pipeline:
        chosen["pipeline"] = ["pipeline", "run"]
    start = [sys.executable, "-m", "tristore"]
    return [Part(name, [*start, *words]) for name, words in chosen.items()]


async def make_operator_token(database_url: str, file: Path) -> None:
    """A token with every right, unless the one in `file` is still good in this database."""
    async with make_pool(database_url, name="up", max_size=1) as pool:
        if file.exists() and await Tokens(pool).find(file.read_text().strip()):
            return
        async with pool.connection() as conn, conn.transaction():
            # Committed after the file is whole: a token nobody can read would be lost for ever.
            private_file.write(file, await create(conn, "operator", SCOPES) + "\n")


async def announce(run: Run) -> None:
    while not await is_ready(run.url):
        await asyncio.sleep(0.2)
    typer.echo(f"Tristore is ready at {run.url} (documentation: {run.url}/docs)")
    typer.echo(f"Operator token: {run.token_file}")
    typer.echo("Servers and pids: tristore status. Ctrl-C stops everything.")


async def is_ready(url: str) -> bool:
    # No proxy from the environment: the platform is on this machine.
    async with httpx.AsyncClient(trust_env=False, timeout=5) as client:
        try:
            return (await client.get(f"{url}/readyz")).status_code == httpx.codes.OK
        except httpx.TransportError:
            return False
