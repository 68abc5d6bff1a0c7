"""The view of a source: the rows of its table and those of its tail, each row in one of them."""

from collections.abc import Iterable
from datetime import UTC, datetime

from tristore.timestore.requests import Source

_PARTITION = {"day": "strftime({}, '%Y-%m-%d')", "month": "strftime({}, '%Y-%m')"}


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def texts(values: Iterable[str]) -> str:
    """A list of texts as SQL."""
    inner = ", ".join("'" + value.replace("'", "''") + "'" for value in values)
    return f"[{inner}]::VARCHAR[]"


def files_sql(files: list[str], partitions: list[str], *, evolving: bool) -> str:
    """Every committed file by name, never a pattern: others lie in the same folders."""
    # Left to itself DuckDB would make a DATE of a partition column.
    kinds = ", ".join(f"{quoted(name)}: VARCHAR" for name in partitions)
    hive = f"hive_partitioning = true, hive_types = {{{kinds}}}" if partitions else ""
    # Opens every file before the query starts, so only where files may differ in columns.
    union = "union_by_name = true" if evolving else ""
    options = "".join(f", {option}" for option in (hive, union) if option)
    return f"SELECT * FROM read_parquet({texts(files)}{options})"


def nothing_sql(columns: dict[str, str]) -> str:
    """No row, but every column with its type."""
    listed = ", ".join(f"NULL::{kind} AS {quoted(name)}" for name, kind in columns.items())
    return f"SELECT {listed} WHERE false"


def tail_sql(relation: str, columns: dict[str, str], time_column: str) -> str:
    """Rows of the log as the table has them: its columns, order and types."""
    listed = ", ".join(
        f"{_expression(name, time_column)}::{kind} AS {quoted(name)}"
        for name, kind in columns.items()
    )
    return f"SELECT {listed} FROM {relation}"


def _expression(name: str, time_column: str) -> str:
    return _PARTITION.get(name, quoted(name)).format(quoted(time_column))


def view_sql(source: Source, columns: Iterable[str], parts: list[str]) -> str:
    listed = ", ".join(map(quoted, columns))
    united = " UNION ALL BY NAME ".join(f"({part})" for part in parts)
    bounds = _bounds(source)
    return f"CREATE TEMP VIEW {quoted(source.name)} AS SELECT {listed} FROM ({united}){bounds}"


def _bounds(source: Source) -> str:
    column = quoted(source.time_column)
    wanted = []
    if source.after is not None:
        wanted.append(f"{column} >= {_moment(source.after)}")
    if source.before is not None:
        wanted.append(f"{column} < {_moment(source.before)}")
    return f" WHERE {' AND '.join(wanted)}" if wanted else ""


def _moment(value: datetime) -> str:
    return f"TIMESTAMPTZ '{value.astimezone(UTC).isoformat()}'"
