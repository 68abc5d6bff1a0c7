"""What one version of a table holds: its files, by partition."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from deltalake import DeltaTable

# Files below it were written by a rewrite of theirs: sorted, and merged where rows merge.
SORTED = "sorted-"


@dataclass(frozen=True, slots=True)
class TableFile:
    path: str
    size: int
    rows: int
    partition: str

    @property
    def batch(self) -> str:
        """The folder of the write it came with."""
        return self.path.split("/")[1]


def contents(table: DeltaTable, column: str) -> dict[str, list[TableFile]]:
    """Oldest partition first."""
    found: defaultdict[str, list[TableFile]] = defaultdict(list)
    actions = pa.table(table.get_add_actions(flatten=True))
    names = ("path", "size_bytes", "num_records", f"partition.{column}")
    for row in actions.select(names).to_pylist():
        file = TableFile(*(row[name] for name in names))
        found[file.partition].append(file)
    return dict(sorted(found.items()))


def settled(files: Sequence[TableFile]) -> bool:
    """Whether one rewrite made all of it, and nothing came since."""
    batches = {file.batch for file in files}
    return len(batches) == 1 and batches.pop().startswith(SORTED)
