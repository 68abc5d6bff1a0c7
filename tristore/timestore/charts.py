"""Growth and churn as SVG charts, readable without colours, scripts or fonts of our own."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

from tristore.timestore import svg, ticks
from tristore.timestore.svg import element, fitted, text, tooltip

WIDTH = 960
# The head is bold, and wider than its size tells.
_FONT, _HEAD = 12, 18.5
_STYLE = """
text{font:12px system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;fill:#3d4650}
.bg{fill:#fff}.head{font-size:17px;font-weight:600;fill:#14181d}.quiet{fill:#66707a}
.grid{stroke:#e3e7eb}.zero{stroke:#9aa4ae}.in{fill:#2f7ed8}.out{fill:#e0762d}
.total{fill:none;stroke:#14181d;stroke-width:1.8;stroke-linejoin:round}.area{fill:#14181d;opacity:.07}
.dot{fill:#14181d}.num{font-variant-numeric:tabular-nums}
@media (prefers-color-scheme:dark){text{fill:#c3ccd5}.bg{fill:#12161b}.head{fill:#f0f3f6}
.quiet{fill:#8b96a1}.grid{stroke:#262d35}.zero{stroke:#5b6570}.in{fill:#5aa2f0}.out{fill:#f2985a}
.total{stroke:#f0f3f6}.area,.dot{fill:#f0f3f6}}
"""
_LEFT, _RIGHT = 84, 24
_TOTAL_TOP, _TOTAL_FOOT = 118, 278
_CHANGE_TOP, _CHANGE_FOOT = 316, 446
_GROWTH_HEIGHT = 498
# Narrower bars than this would be lost; neighbours are added up instead.
_BAR = 2.0
_ROW, _ROWS_TOP, _NAME_ROOM, _FIGURES = 30, 92, 250, 300


@dataclass(frozen=True, slots=True)
class Heading:
    """What a chart shows: its subject, and one line of what was asked."""

    subject: str
    asked: str


@dataclass(frozen=True, slots=True)
class _Scale:
    low: float
    high: float
    begin: float
    end: float

    def __call__(self, value: float) -> float:
        share = (value - self.low) / ((self.high - self.low) or 1)
        return self.begin + share * (self.end - self.begin)


def growth(points: Sequence[dict[str, Any]], end: datetime, heading: Heading) -> str:
    """The total as a line, and below it what came and went; `end` is that of the last bucket."""
    x = _Scale(_moment(points[0]).timestamp(), end.timestamp(), _LEFT, WIDTH - _RIGHT)
    summary = _growth_summary(points)
    bars = _joined(points)
    inside = [
        _head(heading, summary),
        _legend([("in", "bytes in"), ("out", "bytes out"), ("dot", "total")]),
        _total(bars, x, end),
        _changes(bars, x, end),
        *(_time_mark(x, *mark) for mark in ticks.times(_moment(points[0]), end)),
    ]
    return _document(_GROWTH_HEIGHT, heading, summary, inside)


def churn(items: Sequence[dict[str, Any]], by: str, heading: Heading) -> str:
    """A bar a folder: bytes that came and went, or how often something changed."""
    summary = f"{len(items)} folders, those that changed most first" if items else "nothing changed"
    room = WIDTH - _FIGURES - _RIGHT - _NAME_ROOM - _LEFT // 2
    largest = max((sum(_lengths(item, by)) for item in items), default=0)
    x = _Scale(0, largest, 0, room)
    rows = [_churn_row(item, n, by, x) for n, item in enumerate(items)]
    colours = [("in", "bytes in"), ("out", "bytes out")] if by == "bytes" else [("in", "changes")]
    height = _ROWS_TOP + _ROW * max(len(items), 1) + 24
    inside = [_head(heading, summary), _legend(colours), *rows]
    return _document(height, heading, summary, inside)


def _document(height: int, heading: Heading, summary: str, inside: Sequence[str]) -> str:
    """`title` and `desc` are what a screen reader says instead of the picture."""
    told = [
        element("title", svg.escaped(heading.subject), id="title"),
        element("desc", svg.escaped(f"{heading.asked}. {summary}."), id="desc"),
        element("style", _STYLE),
        element("rect", class_="bg", width=WIDTH, height=height),
    ]
    return element(
        "svg",
        *told,
        *inside,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH} {height}",
        width=WIDTH,
        height=height,
        role="img",
        aria_labelledby="title desc",
    )


def _head(heading: Heading, summary: str) -> str:
    room = WIDTH - 48
    return (
        text(fitted(heading.subject, room, _HEAD), 24, 34, class_="head")
        + text(fitted(heading.asked, room, _FONT), 24, 54, class_="quiet")
        + text(fitted(summary, room - 260, _FONT), 24, 74)
    )


def _legend(entries: Sequence[tuple[str, str]]) -> str:
    shown, x = "", float(WIDTH - _RIGHT)
    for colour, words in reversed(entries):
        x -= svg.width(words, _FONT)
        shown += text(words, x, 74)
        shown += element("rect", class_=colour, x=x - 16, y=64, width=10, height=10, rx=2)
        x -= 34
    return shown


def _growth_summary(points: Sequence[dict[str, Any]]) -> str:
    came, went = (sum(point[name] for point in points) for name in ("bytesIn", "bytesOut"))
    total = ticks.size(points[-1]["totalBytes"])
    return f"{total} in the end: {ticks.size(came)} came in, {ticks.size(went)} went out"


def _joined(points: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """As many bars as can be seen."""
    each = -(-len(points) // int((WIDTH - _LEFT - _RIGHT) / _BAR))
    parts = (points[start : start + each] for start in range(0, len(points), each))
    return [
        {
            "bucket": part[0]["bucket"],
            "bytesIn": sum(point["bytesIn"] for point in part),
            "bytesOut": sum(point["bytesOut"] for point in part),
            "totalBytes": part[-1]["totalBytes"],
        }
        for part in parts
    ]


def _total(bars: Sequence[dict[str, Any]], x: _Scale, end: datetime) -> str:
    opening = bars[0]["totalBytes"] - bars[0]["bytesIn"] + bars[0]["bytesOut"]
    totals = [opening, *(bar["totalBytes"] for bar in bars)]
    marks = ticks.even(min(totals), max(totals))
    y = _Scale(marks[0], marks[-1], _TOTAL_FOOT, _TOTAL_TOP)
    # A bucket's total stands at its end: that is when it was reached.
    edges = [_moment(bar).timestamp() for bar in bars] + [end.timestamp()]
    line = [(x(at), y(total)) for at, total in zip(edges, totals, strict=True)]
    foot = [(line[-1][0], y(0)), (line[0][0], y(0))]
    last = element("circle", class_="dot", cx=line[-1][0], cy=line[-1][1], r=3)
    return (
        _axis("total", marks, y)
        + element("path", class_="area", d=svg.path([*line, *foot]) + "Z")
        + element("path", class_="total", d=svg.path(line))
        + last
    )


def _changes(bars: Sequence[dict[str, Any]], x: _Scale, end: datetime) -> str:
    low, high = (max(bar[name] for bar in bars) for name in ("bytesOut", "bytesIn"))
    marks = ticks.even(-low, high, 4)
    y = _Scale(marks[0], marks[-1], _CHANGE_FOOT, _CHANGE_TOP)
    edges = [x(_moment(bar).timestamp()) for bar in bars] + [x(end.timestamp())]
    drawn = [
        _bar(bar, left, right, y) for bar, (left, right) in zip(bars, pairwise(edges), strict=True)
    ]
    return _axis("in and out", marks, y) + "".join(drawn)


def _bar(bar: dict[str, Any], left: float, right: float, y: _Scale) -> str:
    gap = min((right - left) * 0.15, 2)
    place: dict[str, object] = {"x": left + gap / 2, "width": right - left - gap}
    shown = ""
    for colour, amount in (("in", bar["bytesIn"]), ("out", -bar["bytesOut"])):
        if amount:
            top = min(y(0), y(amount))
            height = max(abs(y(amount) - y(0)), 0.8)
            shown += element("rect", class_=colour, y=top, height=height, **place)
    if not shown:
        return ""
    told = f"{bar['bucket']}: {ticks.size(bar['bytesIn'])} in, {ticks.size(bar['bytesOut'])} out, "
    return element("g", tooltip(told + f"{ticks.size(bar['totalBytes'])} in total"), shown)


def _axis(name: str, marks: Sequence[float], y: _Scale) -> str:
    shown = text(name, 24, y.end - 12, class_="quiet")
    for mark in marks:
        line = {"x1": _LEFT, "x2": WIDTH - _RIGHT, "y1": y(mark), "y2": y(mark)}
        shown += element("line", class_="zero" if mark == 0 else "grid", **line)
        label = ticks.size(abs(mark))
        shown += text(label, _LEFT - 8, y(mark) + 4, class_="num", text_anchor="end")
    return shown


def _time_mark(x: _Scale, moment: datetime, near: str, wide: str) -> str:
    at = x(moment.timestamp())
    line = element("line", class_="zero", x1=at, x2=at, y1=_CHANGE_FOOT, y2=_CHANGE_FOOT + 5)
    # What stands at the edge is kept inside of the picture.
    anchor = "end" if at > WIDTH - _RIGHT - 24 else "middle"
    return (
        line
        + text(near, at, _CHANGE_FOOT + 20, class_="num", text_anchor=anchor)
        + (text(wide, at, _CHANGE_FOOT + 36, class_="quiet", text_anchor=anchor) if wide else "")
    )


def _churn_row(item: dict[str, Any], number: int, by: str, x: _Scale) -> str:
    top, left = _ROWS_TOP + number * _ROW, 24 + _NAME_ROOM + 12
    name = f"{item['mount']}:{item['prefix']}"
    shown = tooltip(name) + text(
        fitted(name, _NAME_ROOM, _FONT), 24 + _NAME_ROOM, top + 19, text_anchor="end"
    )
    at = float(left)
    for colour, length in zip(("in", "out"), _lengths(item, by), strict=False):
        if length:
            wide = max(x(length), 1)
            shown += element("rect", class_=colour, x=at, y=top + 6, width=wide, height=18)
            at += wide
    figures = f"{_count(item['changes'], 'change')} · {ticks.size(item['bytesIn'])} in"
    figures += f" · {ticks.size(item['bytesOut'])} out"
    end = WIDTH - _RIGHT
    return element("g", shown, text(figures, end, top + 19, class_="num", text_anchor="end"))


def _lengths(item: dict[str, Any], by: str) -> list[int]:
    return [item["bytesIn"], item["bytesOut"]] if by == "bytes" else [item["changes"]]


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def _moment(point: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(point["bucket"])
