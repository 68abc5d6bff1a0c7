"""Runs every figure into bench/report.md; name some to run only those."""

import importlib
import sys
import time

from bench import report

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


def main() -> None:
    for name in sys.argv[1:] or SCRIPTS:
        started, rows = time.perf_counter(), []
        for figure in importlib.import_module(f"bench.{name}").run():
            rows.append(figure.row())
            print(figure.row(), flush=True)
        print(f"  ({name}: {time.perf_counter() - started:.0f} s)", flush=True)
        report.put(name, rows, SCRIPTS)


main()
