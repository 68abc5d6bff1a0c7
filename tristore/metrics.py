"""Counters, gauges and histograms in Prometheus' text format."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
LATENCY_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
# Label values may come from outside; what is beyond this many is counted together.
MAX_SERIES = 1000
OTHER = "(other)"

Labels = tuple[str, ...]


@dataclass(slots=True)
class Family:
    """Samples under one name, told apart by the values of its labels."""

    name: str
    help: str
    labels: Labels = ()
    kind: str = "gauge"
    values: dict[Labels, float] = field(default_factory=dict)

    def series(self, labels: Labels) -> Labels:
        if labels in self.values or len(self.values) < MAX_SERIES:
            return labels
        return (OTHER,) * len(labels)

    def lines(self) -> Iterable[str]:
        return (
            f"{self.name}{_braced(self.labels, labels)} {_number(value)}"
            for labels, value in self.values.items()
        )

    def render(self) -> str:
        head = f"# HELP {self.name} {self.help}\n# TYPE {self.name} {self.kind}\n"
        return head + "".join(f"{line}\n" for line in self.lines())


class Counter(Family):
    def __init__(self, name: str, help: str, labels: Labels = ()) -> None:
        super().__init__(name, help, labels, "counter")

    def add(self, amount: float, *labels: str) -> None:
        series = self.series(labels)
        self.values[series] = self.values.get(series, 0) + amount


class Gauge(Family):
    def __init__(self, name: str, help: str, labels: Labels = ()) -> None:
        super().__init__(name, help, labels, "gauge")

    def set(self, value: float, *labels: str) -> None:
        self.values[self.series(labels)] = value


class Histogram(Family):
    """`values` holds the sums; the counts per bucket stand beside them."""

    def __init__(
        self, name: str, help: str, labels: Labels = (), buckets: Sequence[float] = LATENCY_BUCKETS
    ) -> None:
        super().__init__(name, help, labels, "histogram")
        self._bounds = tuple(buckets)
        self._counts: dict[Labels, list[int]] = {}

    def observe(self, value: float, *labels: str) -> None:
        series = self.series(labels)
        counts = self._counts.setdefault(series, [0] * (len(self._bounds) + 1))
        counts[bisect_left(self._bounds, value)] += 1
        self.values[series] = self.values.get(series, 0) + value

    def lines(self) -> Iterable[str]:
        for labels, counts in self._counts.items():
            total = 0
            for bound, count in zip((*map(_number, self._bounds), "+Inf"), counts, strict=True):
                total += count
                names = _braced((*self.labels, "le"), (*labels, bound))
                yield f"{self.name}_bucket{names} {total}"
            yield f"{self.name}_sum{_braced(self.labels, labels)} {_number(self.values[labels])}"
            yield f"{self.name}_count{_braced(self.labels, labels)} {total}"


def render(families: Iterable[Family]) -> str:
    return "".join(family.render() for family in families)


def _braced(names: Labels, values: Labels) -> str:
    pairs = [f'{name}="{_escaped(value)}"' for name, value in zip(names, values, strict=True)]
    return "{" + ",".join(pairs) + "}" if pairs else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))
