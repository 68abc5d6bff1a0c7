"""Runs `tristore …` as a person would, and gives back what it printed."""

import json
import subprocess
import sys
from typing import Any

from tests.support.parts import environment
from tristore.config import Settings


def tristore(
    settings: Settings, *argv: str, stdin: str | None = None, **extra: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tristore", *argv],
        env=environment(settings, COLUMNS="200", **extra),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
    )


def answer(settings: Settings, *argv: str, stdin: str | None = None, **extra: str) -> Any:
    """The JSON a command prints; it must have succeeded."""
    done = tristore(settings, *argv, "--json", stdin=stdin, **extra)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
