"""The timestore's part: how storage grew, from the table that Spark made of the file events."""

from typing import Any

from rich.console import Console
from rich.table import Table

from demo import counts
from demo.client import Client
from demo.files import node
from demo.platform import wait_until

GROWTH = """
SELECT strftime(second, '%H:%M:%S'), sum(sum(delta)) OVER (ORDER BY second)::BIGINT,
    sum(delta)::BIGINT
FROM (
    SELECT date_trunc('second', occurred_at) AS second, size_delta AS delta
    FROM filestore_activity WHERE mount = 'lake' AND size_delta IS NOT NULL
)
GROUP BY second ORDER BY second
"""
TOTAL = "SELECT coalesce(sum(net_bytes), 0)::BIGINT FROM filestore_growth WHERE prefix = ''"
WIDTH = 30
console = Console()


def play(client: Client, status: dict[str, Any]) -> None:
    lies = node(client, "")["rollup"]["sizeBytes"]
    wait_until(lambda: counts.duckdb(status, TOTAL) == [[lies]], "the growth table")
    points = counts.duckdb(status, GROWTH)
    table = Table("second", "change", "bytes on the mount", "", title="storage growth")
    for second, total, change in _shown(points):
        bar = "█" * max(1, round(WIDTH * total / max(point[1] for point in points)))
        table.add_row(second, f"{change:+,}", f"{total:,}", bar)
    console.print(table)
    console.print(f"growth table and rollup agree: {lies:,} bytes")


def _shown(points: list[list[Any]], most: int = 8) -> list[list[Any]]:
    """The first and the last ones; a slow machine has more seconds than a screen has lines."""
    return points if len(points) <= most else [*points[: most // 2], *points[-most // 2 :]]
