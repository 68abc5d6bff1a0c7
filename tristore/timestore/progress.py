"""How far a table has come: its version, the log sequence it reaches, its rows and files."""

from typing import Any

from tristore.timestore.place import Place, away
from tristore.timestore.snapshot import through_app


def read(tables: Place, dataset: str) -> dict[str, Any]:
    place = tables.child(dataset)
    try:
        return _read(place, dataset)
    except OSError as error:
        raise away(place, error) or error from None


def _read(place: Place, dataset: str) -> dict[str, Any]:
    if not place.exists():
        empty = {"tableVersion": None, "throughSequence": 0, "rows": 0, "files": 0}
        return {"dataset": dataset, **empty}
    found = place.table()
    return {
        "dataset": dataset,
        "tableVersion": found.version(),
        "throughSequence": found.transaction_version(through_app(dataset)) or 0,
        "rows": found.count(),
        "files": len(found.file_uris()),
    }
