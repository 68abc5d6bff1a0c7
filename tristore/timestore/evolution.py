"""How the columns of a dataset may change: new nullable ones, and nothing that breaks readers."""

from collections.abc import Iterable, Sequence

from tristore.errors import InvalidSchema, SchemaConflict, Violation
from tristore.timestore.schemas import MAX_COLUMNS, TYPES, Column, name_fault, named


def grown(columns: Sequence[Column], wanted: Iterable[Column]) -> tuple[Column, ...]:
    """The columns with what `wanted` adds; those it does not name stay as they are."""
    known = named(columns)
    result = list(columns)
    for column in wanted:
        before = known.get(column.name.lower())
        if before is None:
            result.append(_new(column))
            known[column.name.lower()] = column
        elif before != column:
            result[result.index(before)] = _changed(before, column)
    if len(result) > MAX_COLUMNS:
        raise SchemaConflict(f"a dataset has at most {MAX_COLUMNS} columns; this would be more")
    return tuple(result)


def _new(column: Column) -> Column:
    if fault := name_fault(column.name):
        raise InvalidSchema([Violation(f"/schema/{column.name[:63]}", fault)])
    if column.type not in TYPES:
        raise InvalidSchema(
            [Violation(f"/schema/{column.name}", f"a column's type is one of {', '.join(TYPES)}")]
        )
    if not column.nullable:
        raise SchemaConflict(
            f"the new column {column.name} must be nullable: rows that are there have none"
        )
    return column


def _changed(before: Column, column: Column) -> Column:
    """Only that a column may be null from now on."""
    if before.name != column.name:
        raise SchemaConflict(
            f"column {column.name} is called {before.name} already; names differ by more than case"
        )
    if before.type != column.type:
        raise SchemaConflict(
            f"column {before.name} is {before.type} and cannot become {column.type}; "
            "add a column of another name"
        )
    if before.nullable and not column.nullable:
        raise SchemaConflict(
            f"column {before.name} may be null and cannot become required: rows may have none"
        )
    return column
