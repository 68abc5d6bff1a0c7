"""How far a table has come: its version, the log sequence it reaches, its rows and files."""

from pathlib import Path
from typing import Any

from tristore.timestore import snapshot


def read(root: Path, dataset: str) -> dict[str, Any]:
    if dataset not in snapshot.names(root):
        empty = {"tableVersion": None, "throughSequence": 0, "rows": 0, "files": 0}
        return {"dataset": dataset, **empty}
    found = snapshot.read(root, dataset)
    return {
        "dataset": dataset,
        "tableVersion": found.version,
        "throughSequence": found.through or 0,
        "rows": found.rows,
        "files": len(found.files),
    }
