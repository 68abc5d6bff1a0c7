"""Runs `tristore …` as a person would, and gives back what it printed."""

import json
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.support.parts import environment
from tests.support.warm import Program, Streams
from tristore.config import Settings


def tristore(
    settings: Settings, *argv: str, stdin: str = "", **extra: str
) -> subprocess.CompletedProcess[str]:
    with TemporaryDirectory() as folder:
        given, out, errors = (Path(folder, name) for name in ("in", "out", "err"))
        for path, text in ((given, stdin), (out, ""), (errors, "")):
            path.write_text(text, encoding="utf-8")
        env = environment(settings, COLUMNS="200", **extra)
        code = _ended(Program(["tristore", *argv], env, Streams(given, out, errors)))
        printed = (path.read_text(encoding="utf-8") for path in (out, errors))
        return subprocess.CompletedProcess(argv, code, *printed)


def _ended(program: Program) -> int:
    try:
        return program.wait(60)
    finally:
        program.kill()


def answer(settings: Settings, *argv: str, stdin: str = "", **extra: str) -> Any:
    """The JSON a command prints; it must have succeeded."""
    done = tristore(settings, *argv, "--json", stdin=stdin, **extra)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
