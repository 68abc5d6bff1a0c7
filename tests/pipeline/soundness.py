"""What must hold of the tables whatever happened: each event once, and sums that agree."""

from tests.pipeline.tables import ask, through
from tests.support.database import rows, value
from tristore.timestore.place import Place

_ACTIVITY = "SELECT count(*), count(DISTINCT (event_id, ordinal)), max(sequence)"
_SUMS = """
    SELECT mount, sum(greatest(size_delta, 0)) AS bytes_in, -sum(least(size_delta, 0)) AS bytes_out
    FROM bus.filestore_activity_v WHERE kind = 'file' AND size_delta IS NOT NULL
    GROUP BY mount ORDER BY mount
"""
_GROWTH = """
    SELECT mount, sum(bytes_in), sum(bytes_out) FROM filestore_growth WHERE prefix = ''
    GROUP BY mount ORDER BY mount
"""
# Of two stretches that both hold an event, one was committed twice.
_FED = """
    SELECT dataset, min(after) AS after, max(through) AS through, sum(through - after) AS events
    FROM timestore.fed GROUP BY dataset ORDER BY dataset
"""


def check(database_url: str, tables: Place) -> None:
    last = value(database_url, "SELECT last FROM bus.ingress_head")
    counts = "SELECT count(*), count(DISTINCT id), min(ingress_sequence), max(ingress_sequence)"
    assert ask(tables, f"{counts} FROM events") == [[last, last, 1, last]]
    ((found, distinct, _),) = ask(tables, f"{_ACTIVITY} FROM filestore_activity")
    assert found == distinct == value(database_url, "SELECT count(*) FROM bus.filestore_activity_v")
    sums = [[row["mount"], row["bytes_in"], row["bytes_out"]] for row in rows(database_url, _SUMS)]
    assert ask(tables, _GROWTH) == sums
    names = ("events", "filestore_activity", "filestore_growth")
    assert {through(tables, name) for name in names} == {last}
    fed = [tuple(row.values()) for row in rows(database_url, _FED)]
    assert fed == [(name, 0, last, last) for name in names]
