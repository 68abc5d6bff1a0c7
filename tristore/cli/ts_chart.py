"""Charts of growth and churn for a terminal of any width, with colours or without."""

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from tristore.timestore import ticks
from tristore.timestore.svg import clean

_BLOCKS = " ▁▂▃▄▅▆▇█"
_PLAIN = " .:-=+*#@"
_TOTAL_ROWS, _CHANGE_ROWS = 8, 3
_LABEL = 8
# Narrower than this, only the names and the counts of folders have room.
_ROOMY = 64
_WIDEST_COLUMN = 6


def growth(console: Console, points: Sequence[dict[str, Any]]) -> None:
    """The total by time, and what came in and went out below it."""
    columns = _columns(points, max(console.width - _LABEL - 3, 8))
    wide = min(max((console.width - _LABEL - 3) // len(columns), 1), _WIDEST_COLUMN)
    totals = [column["totalBytes"] for column in columns]
    _panel(console, totals, _TOTAL_ROWS, wide, "bold")
    came, went = ([column[name] for column in columns] for name in ("bytesIn", "bytesOut"))
    _panel(console, came, _CHANGE_ROWS, wide, "blue", "in")
    _panel(console, went, _CHANGE_ROWS, wide, "yellow", "out")
    first, last = columns[0]["bucket"], columns[-1]["bucket"]
    room = len(columns) * wide
    begin, end = (_short(text) for text in (first, last))
    gap = room - len(begin) - len(end)
    times = f"{begin}{' ' * gap}{end}" if gap > 0 and len(columns) > 1 else begin
    corner = "└" if _draws(console) else "+"
    console.print(Text(f"{'':>{_LABEL}} {corner}{times}"), overflow="crop", no_wrap=True)


def churn(console: Console, items: Sequence[dict[str, Any]], by: str) -> None:
    roomy = console.width >= _ROOMY
    names = ("changes", "in", "out", "net") if roomy else ("changes",)
    table = Table(box=None, pad_edge=False)
    table.add_column("folder", overflow="fold", ratio=3)
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("")
    room = max(console.width // 4, 5) if roomy else 10
    largest = max((_amount(item, by) for item in items), default=0) or 1
    for item in items:
        sizes = [ticks.size(item[name]) for name in ("bytesIn", "bytesOut", "netBytes")]
        cells = [f"{item['changes']:,}", *(sizes if roomy else [])]
        bar = _bar(console, _amount(item, by) / largest, room)
        table.add_row(escape(clean(f"{item['mount']}:{item['prefix']}")), *cells, Text(bar, "blue"))
    console.print(table)


def _columns(points: Sequence[dict[str, Any]], most: int) -> list[dict[str, Any]]:
    """Neighbours are added up until they fit."""
    each = -(-len(points) // most)
    parts = [points[start : start + each] for start in range(0, len(points), each)]
    return [
        {
            "bucket": part[0]["bucket"],
            "totalBytes": part[-1]["totalBytes"],
            "bytesIn": sum(point["bytesIn"] for point in part),
            "bytesOut": sum(point["bytesOut"] for point in part),
        }
        for part in parts
    ]


def _panel(
    console: Console,
    values: Sequence[int],
    rows: int,
    wide: int,
    style: str,
    name: str = "total",
) -> None:
    """Bars from 0 up; below 0 nothing is drawn, since nothing can lie there for long."""
    top = ticks.even(0, max(values))[-1]
    for row in range(rows - 1, -1, -1):
        label = ticks.size(top) if row == rows - 1 else name if row == 0 else ""
        cells = (_cell(console, value / top * rows - row) * wide for value in values)
        edge = "│" if _draws(console) else "|"
        line = Text(f"{label:>{_LABEL}} {edge}").append("".join(cells), style)
        console.print(line, overflow="crop", no_wrap=True)


def _bar(console: Console, share: float, room: int) -> str:
    whole = int(share * room)
    mark = _cell(console, 1) * whole
    return mark or (_cell(console, 1 / 8) if share > 0 else "")


def _cell(console: Console, height: float) -> str:
    """One character that is filled so far; a little is never shown as nothing."""
    blocks = _BLOCKS if _draws(console) else _PLAIN
    eighths = max(0, min(8, round(height * 8)))
    return blocks[max(eighths, 1) if 0 < height < 1 else eighths]


def _draws(console: Console) -> bool:
    return console.encoding.lower().startswith("utf")


def _amount(item: dict[str, Any], by: str) -> int:
    return int(item["bytesIn"] + item["bytesOut"] if by == "bytes" else item["changes"])


def _short(text: str) -> str:
    """2026-11-15T10:00:00Z as people write it."""
    return text[5:16].replace("T", " ")
