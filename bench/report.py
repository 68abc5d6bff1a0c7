"""The report: a section a script, each of the day it was measured."""

import os
import platform
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

PATH = Path(__file__).with_name("report.md")
HEAD = """# Figures

Written by `make bench`; `python -m bench <script>` measures a section anew. Every figure stands
beside a limit measured in the same run on the same machine: {machine}. The ratio is the result; the
absolute figure depends on the machine. Fewer is better for times and sizes, more for rates.
"""
TABLE = "| figure | measured | limit | ratio | to reach |\n|---|---|---|---|---|\n"


def put(script: str, rows: Sequence[str], order: Sequence[str]) -> None:
    """Puts a script's rows in place of those it had; sections stand in the order given."""
    found = _sections()
    found[script] = f"## {script}\n\nMeasured {datetime.now(UTC):%Y-%m-%d}.\n\n{TABLE}" + "\n".join(
        rows
    )
    machine = f"{os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"
    parts = [
        HEAD.format(machine=machine).rstrip(),
        *(found[name] for name in order if name in found),
    ]
    PATH.write_text("\n\n".join(parts) + "\n", "utf-8")


def _sections() -> dict[str, str]:
    text = PATH.read_text("utf-8") if PATH.exists() else ""
    return {part.split("\n", 1)[0][3:]: part.rstrip() for part in re.split(r"\n(?=## )", text)[1:]}
