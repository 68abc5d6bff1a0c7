"""Intervals without rows, made visible: one row for every group in every interval."""

from tristore.timestore.views import quoted

MOST_INTERVALS = 100_000
TOO_MANY = (
    f"that would be more than {MOST_INTERVALS} intervals to fill; take a longer interval or a "
    "shorter time, or do not fill"
)


def filled_sql(
    grid: str, groups: list[str], names: list[str], fill: str | float, zero: set[str]
) -> str:
    """The rest of a statement that began with `WITH _rows AS (…)`; `_b` is an interval's start.

    `zero`: columns that are 0 where there are no rows, however others are filled.
    """
    keys = [quoted(name) for name in groups]
    found = f"SELECT DISTINCT {', '.join(keys)} FROM _rows" if keys else "SELECT 1 AS _one"
    same = "".join(f" AND r.{key} IS NOT DISTINCT FROM g.{key}" for key in keys)
    inner = [f"g.{key}" for key in keys] + [f"r.{quoted(name)}" for name in names]
    partition = f"PARTITION BY {', '.join(keys)} " if keys else ""
    shown = keys + [
        f"coalesce({quoted(name)}, 0) AS {quoted(name)}"
        if name in zero
        else f"{_filled(quoted(name), fill, partition)} AS {quoted(name)}"
        for name in names
    ]
    return (
        f"_grid AS ({grid}), _groups AS ({found}), "
        f"_whole AS (SELECT t._b, {', '.join(inner)} FROM _grid t CROSS JOIN _groups g "
        f"LEFT JOIN _rows r ON r._b = t._b{same}) "
        f"SELECT make_timestamptz(_b) AS bucket, {', '.join(shown)} FROM _whole"
    )


def _filled(name: str, fill: str | float, partition: str) -> str:
    before = f"OVER ({partition}ORDER BY _b ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
    if fill == "null":
        return name
    if fill == "previous":
        return f"last_value({name} IGNORE NULLS) {before}"
    if fill != "linear":
        value = float(fill)
        text = str(int(value)) if value.is_integer() else f"{value!r}::DOUBLE"
        return f"coalesce({name}, {text})"
    after = f"OVER ({partition}ORDER BY _b ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)"
    known = f"CASE WHEN {name} IS NOT NULL THEN _b END"
    low, low_at = (f"last_value({x} IGNORE NULLS) {before}" for x in (name, known))
    high, high_at = (f"first_value({x} IGNORE NULLS) {after}" for x in (name, known))
    line = f"{low} + ({high} - {low}) * ((_b - {low_at})::DOUBLE / ({high_at} - {low_at}))"
    return f"CASE WHEN {name} IS NOT NULL THEN {name} ELSE {line} END"
