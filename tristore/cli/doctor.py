"""`tristore doctor`: looks at everything the platform stands on and says what to do next."""

import asyncio
import json
from pathlib import Path

import typer
from rich.console import Console
from rich.markup import escape

from tristore.cli.client import running
from tristore.cli.options import AsJson, DataDir
from tristore.config import Settings

_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


def doctor(data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Check the servers, the log, what waits, and the machine. Exit 1 if something fails."""
    # Imported here: the queue and the drivers take long to load, and other commands need neither.
    from tristore.cli.check import FAIL, Check, Patient
    from tristore.cli.checkup import examine

    database_url, redis_url, folder = addresses(data_dir)
    patient = Patient(Settings(), database_url, redis_url, folder)

    async def run() -> list[Check]:
        found = []
        async for check in examine(patient):
            found.append(check)
            if not as_json:
                _print(check.state, check.name, check.detail, check.next_step)
        return found

    checks = asyncio.run(run())
    failed = any(check.state == FAIL for check in checks)
    if as_json:
        print(json.dumps({"ok": not failed, "checks": [check.to_json() for check in checks]}))
    if failed:
        raise typer.Exit(1)


def addresses(data_dir: Path | None) -> tuple[str, str, Path]:
    settings = Settings()
    folder = (data_dir or settings.data_dir).absolute()
    if settings.database_url and settings.redis_url and data_dir is None:
        return settings.database_url, settings.redis_url, folder
    run = running(folder)
    return run.database_url, run.redis_url, folder


def _print(state: str, name: str, detail: str, next_step: str | None) -> None:
    mark = f"[{_COLOURS[state]}]{state:<4}[/]"
    hint = f"  -> {next_step}" if next_step else ""
    Console().print(f"{mark}  {name:<18} {escape(detail + hint)}", soft_wrap=True)
