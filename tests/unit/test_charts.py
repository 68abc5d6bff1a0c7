"""Charts: well-formed whatever folders are called, inside of their frame, and true to the rows."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any
from xml.etree import ElementTree

import pytest
from rich.console import Console

from tristore.cli import ts_chart
from tristore.timestore import charts, svg, ticks

BEGIN = datetime(2026, 11, 8, 18, tzinfo=UTC)
HOUR = timedelta(hours=1)
SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = (
    "</text><script>alert(1)</script>\"' &amp; \x00\x1b[31m\u202e\ud800 ]]> <!-- 📁" + "é" * 300
)


def points(changes: list[tuple[int, int]], step: timedelta = HOUR) -> list[dict[str, Any]]:
    found, total = [], 0
    for number, (came, went) in enumerate(changes):
        total += came - went
        bucket = (BEGIN + number * step).isoformat().replace("+00:00", "Z")
        sums = {"bytesIn": came, "bytesOut": went, "totalBytes": total}
        found.append({"bucket": bucket, **sums})
    return found


def folder(prefix: str, changes: int, came: int, went: int) -> dict[str, Any]:
    sums = {"bytesIn": came, "bytesOut": went, "netBytes": came - went}
    return {"mount": "m", "prefix": prefix, "changes": changes, **sums}


def drawn(changes: list[tuple[int, int]], name: str = "m", step: timedelta = HOUR) -> str:
    end = BEGIN + len(changes) * step
    return charts.growth(points(changes, step), end, charts.Heading(name, "asked"))


def bars(chart: str, colour: str) -> list[ElementTree.Element]:
    groups = ElementTree.fromstring(chart).iter(f"{SVG}g")
    return [
        bar for group in groups for bar in group.iter(f"{SVG}rect") if bar.get("class") == colour
    ]


def test_bars_are_as_long_as_the_bytes_and_tell_them() -> None:
    chart = drawn([(1000, 0), (0, 0), (500, 250)])
    came, went = bars(chart, "in"), bars(chart, "out")
    assert float(came[0].get("height", 0)) == pytest.approx(
        2 * float(came[1].get("height", 0)), abs=0.3
    )
    assert float(came[1].get("height", 0)) == pytest.approx(
        2 * float(went[0].get("height", 0)), abs=0.3
    )
    titles = [title.text for title in ElementTree.fromstring(chart).iter(f"{SVG}title")]
    assert "2026-11-08T20:00:00Z: 500 B in, 250 B out, 1.25 kB in total" in titles


def test_a_chart_says_itself_to_a_screen_reader() -> None:
    root = ElementTree.fromstring(drawn([(1000, 0)], "the lake"))
    assert root.get("role") == "img"
    assert [root.find(f"{SVG}{name}").text for name in ("title", "desc")] == [  # type: ignore[union-attr]
        "the lake",
        "asked. 1 kB in the end: 1 kB came in, 0 B went out.",
    ]


@pytest.mark.parametrize(
    "chart",
    [
        drawn([(5, 1)], HOSTILE),
        charts.churn([folder(HOSTILE, 3, 2, 1)], "bytes", charts.Heading(HOSTILE, HOSTILE)),
    ],
)
def test_no_name_gets_out_of_its_text(chart: str) -> None:
    root = ElementTree.fromstring(chart.encode())
    names = {element.tag.removeprefix(SVG) for element in root.iter()}
    assert names <= {"svg", "title", "desc", "style", "rect", "text", "line", "path", "circle", "g"}
    assert not any(key.startswith("on") or "href" in key for e in root.iter() for key in e.attrib)
    assert not re.search("[\x00-\x08\x1b\u202e]", chart)


@pytest.mark.parametrize(
    ("changes", "step"),
    [
        ([(0, 0)], HOUR),
        ([(0, 0)] * 24, HOUR),
        ([(1, 0), (0, 1)], timedelta(seconds=1)),
        ([(0, 10**12), (5, 5)], timedelta(days=7)),
        ([(2**62, 2**61)] * 3, timedelta(days=90)),
        ([(n % 97, n % 13) for n in range(10_000)], timedelta(minutes=5)),
    ],
)
def test_everything_lies_inside_of_the_frame(
    changes: list[tuple[int, int]], step: timedelta
) -> None:
    root = ElementTree.fromstring(drawn(changes, step=step))
    width, height = float(root.get("width", 0)), float(root.get("height", 0))
    for element in root.iter():
        for name, most in (("x", width), ("x2", width), ("y", height), ("y2", height)):
            assert 0 <= float(element.get(name, 0)) <= most
        for number in re.findall(r"[\d.]+", element.get("d", "")):
            assert 0 <= float(number) <= width
    assert len(list(root.iter(f"{SVG}rect"))) < 1000


def test_long_names_of_folders_are_cut_and_still_told_apart() -> None:
    names = [f"{'very long name ' * 20}{end}" for end in ("one", "two")]
    chart = charts.churn(
        [folder(name, 1, 1, 0) for name in names], "changes", charts.Heading("", "")
    )
    texts = [text.text or "" for text in ElementTree.fromstring(chart).iter(f"{SVG}text")]
    shown = [text for text in texts if text.startswith("m:very")]
    assert len(set(shown)) == 2
    assert all(svg.width(text, 12) <= 250 for text in shown)


def test_sizes_and_marks_are_round() -> None:
    sizes = [0, 999, 1000, 1250, 999_999, -5_000_000, 2**63]
    assert [ticks.size(count) for count in sizes] == [
        *("0 B", "999 B", "1 kB", "1.25 kB", "1 MB", "-5 MB", "9.22 EB")
    ]
    assert ticks.even(0, 130) == [0, 50, 100, 150]
    assert ticks.even(-3, 8) == [-5, 0, 5, 10]
    assert ticks.even(0, 0)[0] == 0
    marks = ticks.times(BEGIN, BEGIN + timedelta(hours=12))
    assert [label for _, label, _ in marks][:2] == ["18:00", "20:00"]
    assert [wide for _, _, wide in marks if wide] == ["8 Nov 2026", "9 Nov 2026"]
    for days in (1, 6, 40, 300, 4000, 100_000):
        assert 1 < len(ticks.times(BEGIN, BEGIN + timedelta(days=days))) <= 11


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
@pytest.mark.parametrize("width", [24, 40, 80, 200])
def test_a_terminal_of_any_width_shows_whole_lines(
    width: int, encoding: str, tmp_path: Any
) -> None:
    with (tmp_path / "screen").open("w+", encoding=encoding) as screen:
        console = Console(file=screen, width=width, no_color=True)
        ts_chart.growth(console, points([(n, n % 3) for n in range(500)]))
        if encoding == "utf-8":
            ts_chart.churn(console, [folder(HOSTILE, 12, 10**9, 5)], "changes")
        screen.seek(0)
        lines = screen.read().splitlines()
    assert all(len(line) <= width for line in lines)
    assert "total" in "".join(lines)
    assert "\x1b" not in "".join(lines)
