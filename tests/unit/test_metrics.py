"""The text Prometheus reads: labels escaped, histograms cumulative, series bounded."""

from tristore.metrics import MAX_SERIES, OTHER, Counter, Gauge, Histogram, render


def test_counters_and_gauges() -> None:
    counter = Counter("seen_total", "Things seen.", ("source",))
    counter.add(1, 'a"b\\c\nd')
    counter.add(2, 'a"b\\c\nd')
    gauge = Gauge("depth", "How deep.")
    gauge.set(0.5)
    assert render([counter, gauge]) == (
        "# HELP seen_total Things seen.\n# TYPE seen_total counter\n"
        'seen_total{source="a\\"b\\\\c\\nd"} 3\n'
        "# HELP depth How deep.\n# TYPE depth gauge\ndepth 0.5\n"
    )


def test_a_histogram_counts_cumulatively() -> None:
    histogram = Histogram("took_seconds", "Time.", buckets=(0.1, 1))
    for seconds in (0.1, 0.5, 7):
        histogram.observe(seconds)
    assert render([histogram]).splitlines()[2:] == [
        'took_seconds_bucket{le="0.1"} 1',
        'took_seconds_bucket{le="1"} 2',
        'took_seconds_bucket{le="+Inf"} 3',
        "took_seconds_sum 7.6",
        "took_seconds_count 3",
    ]


def test_a_stranger_cannot_make_series_without_end() -> None:
    counter = Counter("seen_total", "Things seen.", ("source",))
    for number in range(MAX_SERIES + 50):
        counter.add(1, str(number))
    assert len(counter.values) == MAX_SERIES + 1
    assert counter.values[(OTHER,)] == 50
