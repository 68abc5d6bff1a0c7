"""Questions to one dataset: ranges, filters, groups and intervals, compared with plain Python."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support import naive_downsample as naive
from tests.support.api import Api, make_token, own_api
from tests.support.command import answer, tristore
from tests.support.timestore import ALL, WEATHER, Set

START = datetime(2026, 11, 15, tzinfo=UTC)
SPAN = {"from": "2026-11-15T00:00:00Z", "to": "2026-11-15T12:00:00Z"}


@pytest.fixture(scope="module")
def api(server_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    root: Path = tmp_path_factory.mktemp("tables")
    with own_api(server_url, "inline", TRISTORE_TIMESTORE__ROOT=str(root)) as api:
        yield api


@pytest.fixture(scope="module")
def http(api: Api) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=api.url, headers=api.bearer(*ALL), timeout=60) as client:
        yield client


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    """A day of three stations with gaps of hours, and values that are not there."""
    dice = random.Random(11)
    found = []
    for number in range(400):
        at = START + timedelta(seconds=dice.randrange(-40_000, 60_000), microseconds=number)
        if at.hour % 5 == 0:
            continue
        celsius = None if dice.random() < 0.1 else round(dice.uniform(-20, 40), 2)
        station = dice.choice(["north", "south", 'it\'s "odd"'])
        found.append({"at": at, "station": station, "celsius": celsius, "hits": dice.randrange(9)})
    return found


@pytest.fixture(scope="module")
def weather(http: httpx.Client, rows: list[dict[str, Any]]) -> Set:
    """Half of the rows in one batch, half in another; none of it in a table yet."""
    made = Set.make(http, schema=[*WEATHER, {"name": "hits", "type": "long"}])
    for part in (rows[::2], rows[1::2]):
        sent = [{**row, "at": row["at"].isoformat()} for row in part]
        answer = made.rows(*sent)
        assert answer.status_code == 202, answer.text
    return made


def ask(weather: Set, **body: Any) -> dict[str, Any]:
    answer = weather.http.post(f"{weather.path}/query", json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


def test_staged_rows_are_answered_at_once(weather: Set, rows: list[dict[str, Any]]) -> None:
    answer = ask(weather)
    assert [column["name"] for column in answer["columns"]] == ["at", "station", "celsius", "hits"]
    found = [
        {"at": at(r[0]), "station": r[1], "celsius": r[2], "hits": r[3]} for r in answer["rows"]
    ]
    assert found == sorted(rows, key=lambda row: row["at"])
    assert answer["tableVersion"] == {weather.slug: None}
    assert answer["throughSequence"] == 2


def test_a_range_is_from_and_not_to(weather: Set, rows: list[dict[str, Any]]) -> None:
    ordered = sorted(row["at"] for row in rows)
    low, high = ordered[10], ordered[20]
    answer = ask(weather, **{"from": low.isoformat(), "to": high.isoformat(), "columns": ["at"]})
    assert [at(row[0]) for row in answer["rows"]] == ordered[10:20]


FILTERS: list[tuple[dict[str, Any], Any]] = [
    ({"column": "station", "op": "eq", "value": 'it\'s "odd"'}, lambda r: "odd" in r["station"]),
    ({"column": "station", "op": "neq", "value": "north"}, lambda r: r["station"] != "north"),
    ({"column": "hits", "op": "lt", "value": 3}, lambda r: r["hits"] < 3),
    ({"column": "hits", "op": "lte", "value": 3.5}, lambda r: r["hits"] <= 3.5),
    (
        {"column": "celsius", "op": "gt", "value": 10},
        lambda r: r["celsius"] is not None and r["celsius"] > 10,
    ),
    (
        {"column": "at", "op": "gte", "value": "2026-11-15T01:00:00+01:00"},
        lambda r: r["at"] >= START,
    ),
    ({"column": "hits", "op": "in", "value": [1, 2]}, lambda r: r["hits"] in (1, 2)),
    ({"column": "hits", "op": "between", "value": [2, 4]}, lambda r: 2 <= r["hits"] <= 4),
    ({"column": "station", "op": "prefix", "value": "no"}, lambda r: r["station"].startswith("no")),
    ({"column": "celsius", "op": "is_null"}, lambda r: r["celsius"] is None),
    ({"column": "celsius", "op": "is_null", "value": False}, lambda r: r["celsius"] is not None),
    ({"column": "station", "op": "eq", "value": "' OR 1=1 --"}, lambda r: False),
]


@pytest.mark.parametrize(("condition", "keeps"), FILTERS)
def test_filters(
    weather: Set, rows: list[dict[str, Any]], condition: dict[str, Any], keeps: Any
) -> None:
    answer = ask(weather, filters=[condition], columns=["at"])
    wanted = sorted(row["at"] for row in rows if keeps(row))
    assert [at(row[0]) for row in answer["rows"]] == wanted


AGGREGATES: list[dict[str, Any]] = [
    *({"fn": fn, "column": "celsius"} for fn in ("avg", "min", "max", "sum", "median")),
    *({"fn": fn, "column": "celsius"} for fn in ("count", "first", "last")),
    {"fn": "percentile", "column": "celsius", "p": 0.9},
    {"fn": "count_distinct", "column": "hits", "as": "kinds"},
    {"fn": "count", "as": "all"},
]


def test_one_row_per_interval_and_group(weather: Set, rows: list[dict[str, Any]]) -> None:
    down = {"interval": "2h", "aggregates": AGGREGATES}
    answer = ask(weather, groupBy=["station"], downsample=down)
    names = [column["name"] for column in answer["columns"]]
    assert names[:2] == ["bucket", "station"]
    assert "p90_celsius" in names
    wanted = {}
    for station in {row["station"] for row in rows}:
        own = [row for row in rows if row["station"] == station]
        for start, inside in naive.buckets(own, "at", 7200).items():
            wanted[datetime.fromtimestamp(start, UTC), station] = [
                naive.aggregate(a["fn"], inside, a.get("column", "*"), "at") for a in AGGREGATES
            ]
    found = {(at(row[0]), row[1]): row[2:] for row in answer["rows"]}
    assert found.keys() == wanted.keys()
    for key, values in wanted.items():
        assert found[key] == [pytest.approx(value) for value in values], key
    assert list(found) == sorted(found)


@pytest.mark.parametrize("how", ["null", "previous", "linear", 0, 1.5])
def test_empty_intervals_are_filled(
    weather: Set, rows: list[dict[str, Any]], how: str | float
) -> None:
    aggregates = [{"fn": "avg", "column": "celsius"}, {"fn": "count"}]
    down = {"interval": "1h", "aggregates": aggregates, "fill": how}
    answer = ask(weather, **SPAN, groupBy=["station"], downsample=down)
    begin, end = at(SPAN["from"]), at(SPAN["to"])
    for station in {row["station"] for row in rows}:
        own = [r for r in rows if r["station"] == station and begin <= r["at"] < end]
        inside = naive.buckets(own, "at", 3600)
        hours = [inside.get(int(begin.timestamp()) + 3600 * hour, []) for hour in range(12)]
        averages = [naive.aggregate("avg", hour, "celsius", "at") for hour in hours]
        found = [row for row in answer["rows"] if row[1] == station]
        assert [at(row[0]) for row in found] == [begin + timedelta(hours=n) for n in range(12)]
        assert [row[2] for row in found] == [pytest.approx(v) for v in naive.filled(averages, how)]
        assert [row[3] for row in found] == [len(hour) for hour in hours]


def test_weeks_begin_on_mondays_and_times_before_1970_have_intervals(http: httpx.Client) -> None:
    made = Set.make(http)
    times = ("1969-12-31T23:59:59.5Z", "2026-11-15T23:00:00Z", "2026-11-16T00:00:00Z")
    made.rows(*({"at": time, "station": "s", "celsius": 1} for time in times))
    counted = [{"fn": "count"}]
    weeks = ask(made, downsample={"interval": "1w", "aggregates": counted})["rows"]
    assert weeks == [
        ["1969-12-29T00:00:00Z", 1],
        ["2026-11-09T00:00:00Z", 1],
        ["2026-11-16T00:00:00Z", 1],
    ]
    days = ask(made, downsample={"interval": "1d", "aggregates": counted})["rows"]
    assert days[0] == ["1969-12-31T00:00:00Z", 1]


@pytest.mark.parametrize(
    "span", [{}, {"from": "2020-01-01T00:00:00Z"}, {"to": "2027-06-01T00:00:00Z"}]
)
def test_more_intervals_than_can_be_filled_are_refused_where_rows_decide_how_many(
    http: httpx.Client, span: dict[str, str]
) -> None:
    made = Set.make(http)
    for time in ("2026-11-13T00:00:00Z", "2026-11-15T00:00:00Z"):
        made.rows({"at": time, "station": "s", "celsius": 1})
    down = {"interval": "1s", "aggregates": [{"fn": "count"}], "fill": "null"}
    answer = http.post(f"{made.path}/query", json={**span, "downsample": down})
    assert answer.status_code == 422, answer.text
    assert "more than 100000 intervals" in answer.json()["detail"]


def test_order_and_limit(weather: Set, rows: list[dict[str, Any]]) -> None:
    order = [{"column": "hits", "direction": "desc"}, {"column": "at"}]
    answer = ask(weather, columns=["hits", "at"], order=order, limit=7)
    wanted = sorted(rows, key=lambda row: (-row["hits"], row["at"]))[:7]
    assert [(row[0], at(row[1])) for row in answer["rows"]] == [
        (r["hits"], r["at"]) for r in wanted
    ]
    assert answer["truncated"] is True


COUNT = {"interval": "1h", "aggregates": [{"fn": "count"}]}


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"columns": ["at", "nothing"]}, "there is no column 'nothing'"),
        ({"columns": ['at" FROM events --']}, "there is no column"),
        ({"filters": [{"column": "nothing", "op": "eq", "value": 1}]}, "there is no column"),
        ({"filters": [{"column": "hits", "op": "eq", "value": "1"}]}, "wants a number"),
        ({"filters": [{"column": "hits", "op": "eq", "value": 2**64}]}, "int64"),
        ({"filters": [{"column": "at", "op": "gt", "value": "yesterday"}]}, "a time with a zone"),
        ({"filters": [{"column": "hits", "op": "between", "value": [1]}]}, "a list of two"),
        ({"filters": [{"column": "hits", "op": "prefix", "value": "1"}]}, "wants text"),
        ({"order": [{"column": "nothing"}]}, "there is no column 'nothing'"),
        ({"groupBy": ["station"]}, "downsample"),
        ({"groupBy": ["nothing"], "downsample": COUNT}, "there is no column"),
        ({"downsample": {**COUNT, "interval": "1 hour"}}, "interval"),
        ({"downsample": {**COUNT, "aggregates": [{"fn": "avg", "column": "station"}]}}, "numbers"),
        ({"downsample": {**COUNT, "aggregates": [{"fn": "count"}] * 2}}, "use `as`"),
        ({"downsample": {**COUNT, "aggregates": [{"fn": "percentile", "column": "hits"}]}}, "`p`"),
        (
            {
                "downsample": {**COUNT, "interval": "1s", "fill": 0},
                **SPAN | {"from": "2020-01-01T00:00:00Z"},
            },
            "longer interval",
        ),
        (
            {
                "downsample": {
                    "interval": "1h",
                    "aggregates": [{"fn": "min", "column": "station"}],
                    "fill": "linear",
                }
            },
            "fills only numbers",
        ),
        ({"from": "2026-11-15T00:00:00Z", "to": "2026-11-15T00:00:00Z"}, "before"),
        ({"wher": 1}, "wher"),
    ],
)
def test_a_wrong_question_is_told_what_is_wrong(
    weather: Set, body: dict[str, Any], told: str
) -> None:
    answer = weather.http.post(f"{weather.path}/query", json=body)
    assert answer.status_code == 422, answer.text
    assert told in answer.text


def test_the_command_line_asks_the_same(api: Api, weather: Set) -> None:
    found = {"TRISTORE_URL": api.url, "TRISTORE_TOKEN": make_token(api.database, *ALL)}
    named = ["ts", "query", weather.slug, "--interval", "2h", "-a", "avg:hits"]
    named += ["-a", "percentile@0.9:celsius", "-f", "hits:in:1,2", "--group-by", "station"]
    printed = answer(api.settings, *named, **found)
    aggregates: list[dict[str, Any]] = [{"fn": "avg", "column": "hits"}]
    aggregates += [{"fn": "percentile", "column": "celsius", "p": 0.9}]
    body: dict[str, Any] = {
        "downsample": {"interval": "2h", "aggregates": aggregates},
        "groupBy": ["station"],
    }
    body |= {"filters": [{"column": "hits", "op": "in", "value": [1, 2]}], "limit": 100}
    asked = ask(weather, **body)["rows"]
    assert [row[:2] for row in printed["rows"]] == [row[:2] for row in asked] != []
    # Two threads add in an order of their own: the last digit of an average may differ.
    for one, other in zip(printed["rows"], asked, strict=True):
        assert one[2:] == [pytest.approx(value) for value in other[2:]]
    named = ["ts", "query", weather.slug, "--interval", "1w", "-a", "count", "-f"]
    for given, value in (("celsius:is_null", True), ("celsius:is_null:false", False)):
        printed = answer(api.settings, *named, given, **found)
        body = {"downsample": {"interval": "1w", "aggregates": [{"fn": "count"}]}}
        body |= {"filters": [{"column": "celsius", "op": "is_null", "value": value}]}
        assert printed["rows"] == ask(weather, **body)["rows"] != []
    counted = answer(api.settings, "ts", "sql", f"SELECT count(*) FROM {weather.slug}", **found)
    assert counted["rows"][0][0] > 100
    shown = tristore(api.settings, "ts", "sql", "-", stdin="SELECT 7 AS seven", **found)
    assert (shown.returncode, "seven" in shown.stdout) == (0, True)
    refused = tristore(api.settings, "ts", "sql", "DROP TABLE events", **found)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "only SELECT is allowed" in refused.stderr
