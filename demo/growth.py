"""The timestore's part: how storage grew and which folders changed, from the file events."""

from datetime import UTC, datetime, timedelta
from typing import Any

from rich.console import Console

from demo.client import Client
from demo.files import node
from tristore.cli import ts_chart

STORAGE = "/timestore/v1/storage"
# Longer than the story takes, and few enough points for a screen.
LAST, BUCKET = timedelta(minutes=3), "2s"
console = Console()


def play(client: Client) -> None:
    lies = node(client, "")["rollup"]["sizeBytes"]
    points = _story(_asked(client, "growth", bucket=BUCKET)["points"])
    console.print("storage growth of `lake`, two seconds a column or more")
    ts_chart.growth(console, points)
    console.print("folders of `lake` by changes")
    ts_chart.churn(console, _asked(client, "churn", limit=5)["items"], "changes")
    if points[-1]["totalBytes"] != lies:
        raise SystemExit("growth and the filestore's own sum differ: this is a bug")
    console.print(f"growth and the filestore's own sum agree: {lies:,} bytes")


def _asked(client: Client, what: str, **params: Any) -> dict[str, Any]:
    since = (datetime.now(UTC) - LAST).isoformat()
    return dict(client.get(f"{STORAGE}/{what}", mount="lake", **{"from": since}, **params))


def _story(points: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """From the first change on."""
    changed = [n for n, p in enumerate(points) if p["bytesIn"] or p["bytesOut"]]
    return points[max(changed[0] - 1, 0) :] if changed else points
