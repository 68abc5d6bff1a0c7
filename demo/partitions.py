"""The timestore's other part: a dataset of a user's own, and an hour of it that closed."""

from datetime import UTC, datetime, timedelta
from typing import Any

from rich.console import Console
from rich.table import Table

from demo.client import Client
from demo.platform import wait_until

DATASETS = "/timestore/v1/datasets"
WEATHER = {
    "slug": "weather",
    "timeColumn": "at",
    "granularity": "hour",
    "schema": [
        {"name": "at", "type": "timestamp"},
        {"name": "station", "type": "string"},
        {"name": "celsius", "type": "double"},
    ],
}
# Later than that an hour waits no more for rows: it ends, waits an hour, and closes.
LONG_AGO = timedelta(hours=3)
console = Console()


def ingest(client: Client) -> None:
    """Early in the story, so that Spark has written and closed it when its turn comes."""
    client.post(DATASETS, WEATHER)
    begun = (datetime.now(UTC) - LONG_AGO).replace(minute=0, second=0, microsecond=0)
    rows = [
        {
            "at": (begun + timedelta(seconds=30 * number)).isoformat(),
            "station": f"s{number % 3}",
            "celsius": 10 + number / 10,
        }
        for number in range(120)
    ]
    client.post(f"{DATASETS}/weather/ingest", {"rows": rows})
    console.print(f"{len(rows)} rows of the hour {begun:%H:%M} ingested into weather")


def show(client: Client) -> None:
    wait_until(lambda: _closed(client), "the partition to close")
    table = Table("partition", "state", "revision", "rows", "files", title="dataset weather")
    for item in _closed(client):
        table.add_row(*(str(item[str(column.header)]) for column in table.columns))
    console.print(table)


def _closed(client: Client) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get(f"{DATASETS}/weather/partitions", state="closed")[
        "items"
    ]
    return found
