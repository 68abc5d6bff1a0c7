"""`run.json`: how other programs on this machine find a running platform."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tristore.errors import Forbidden
from tristore.local import private_file

NAME = "run.json"


@dataclass(frozen=True, slots=True)
class Run:
    url: str
    database_url: str
    redis_url: str
    token_file: Path
    pid: int
    pids: Mapping[str, int] = field(default_factory=dict)


def write(folder: Path, run: Run) -> None:
    body = {
        "url": run.url,
        "databaseUrl": run.database_url,
        "redisUrl": run.redis_url,
        "tokenFile": str(run.token_file),
        "pid": run.pid,
        "pids": dict(run.pids),
    }
    private_file.write(folder / NAME, json.dumps(body, indent=2) + "\n")


def read(folder: Path) -> Run | None:
    """The platform that runs on `folder`; a file left by a killed one does not count."""
    path = folder / NAME
    try:
        body = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    except PermissionError:
        raise Forbidden(f"{path} belongs to another user; ask as the one who ran it") from None
    if not _wrote(body["pid"], path):
        return None
    return Run(
        body["url"],
        body["databaseUrl"],
        body["redisUrl"],
        Path(body["tokenFile"]),
        body["pid"],
        body["pids"],
    )


def remove(folder: Path) -> None:
    (folder / NAME).unlink(missing_ok=True)


def _wrote(pid: int, path: Path) -> bool:
    """A process that began after the file was written merely got the same number."""
    try:
        return bool(psutil.Process(pid).create_time() <= path.stat().st_mtime + 1)
    except psutil.NoSuchProcess:
        return False
