"""Growth told from rows of activity: the pipeline's partial sums, in DuckDB's SQL."""

from tristore.db.queries import load

_sql = load("tristore.timestore", "growth_tail.sql")
_INSIDE = "CASE WHEN $1 = '' THEN '' ELSE $1 || '/' END"


def tail_sql(relation: str, depth: int) -> str:
    """Growth rows, as the table has them, of the activity rows in `relation` (a name of ours)."""
    here = _sql.folder.format(path="path", depth=int(depth))
    there = _sql.folder.format(path="previous_path", depth=int(depth))
    files = _sql.files.format(relation=relation)
    return str(_sql.tail.format(files=files, depth=int(depth), here=here, there=there))


def folder_sql(relation: str) -> str:
    """The changes of the folder bound to `$1`, however deep it lies."""
    files = _sql.files.format(relation=relation)
    return str(_sql.folder_changes.format(files=files, inside=_INSIDE))
