"""Runs every figure and writes bench/report.md; name some to run only those."""

import importlib
import os
import platform
import sys
import time
from pathlib import Path

SCRIPTS = [
    "publish_many",
    "outbox_to_log",
    "single_jobs",
    "publish_to_socket",
    "outbox_add",
    "redis_return",
    "admin_events",
    "idle_sockets",
    "metastore_sync",
    "import_audit",
    "uploads",
    "big_file",
    "children",
    "metastore_writes",
    "metastore_search",
    "pipeline_throughput",
    "pipeline_freshness",
    "compaction",
    "ingest",
    "platform_memory",
    "queries",
    "growth",
]
REPORT = Path(__file__).with_name("report.md")
HEAD = """# Figures

Written by `make bench`. Every figure stands beside a limit measured in the same run on the same
machine: {machine}. The ratio is the result; the absolute figure depends on the machine. Fewer is
better for times and sizes, more for rates.

| figure | measured | limit | ratio | to reach |
|---|---|---|---|---|
"""


def main() -> None:
    chosen = sys.argv[1:] or SCRIPTS
    rows = []
    for name in chosen:
        started = time.perf_counter()
        for figure in importlib.import_module(f"bench.{name}").run():
            rows.append(figure.row())
            print(figure.row(), flush=True)
        print(f"  ({name}: {time.perf_counter() - started:.0f} s)", flush=True)
    if chosen == SCRIPTS:
        machine = f"{os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"
        REPORT.write_text(HEAD.format(machine=machine) + "\n".join(rows) + "\n", "utf-8")


main()
