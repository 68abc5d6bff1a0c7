"""Whether the files of a table are those that were written: their size, and their checksums."""

import os
from collections.abc import Iterable
from pathlib import Path

from tristore.errors import TableDamaged
from tristore.timestore import checksums
from tristore.timestore.snapshot import File


class Integrity:
    """A file that was found whole is not read through again unless it changes."""

    def __init__(self) -> None:
        self._whole: dict[str, tuple[int, int, int]] = {}

    def check(self, table: str, files: Iterable[File]) -> None:
        """DuckDB reads what it finds: of one flipped bit it may make other rows."""
        for file in files:
            if not self._is_whole(file):
                raise damaged(table)

    def _is_whole(self, file: File) -> bool:
        try:
            found = os.stat(file.path)
        except OSError:
            return False
        seen = (found.st_ino, found.st_mtime_ns, found.st_size)
        if self._whole.get(file.path) == seen:
            return True
        if found.st_size != file.bytes or not checksums.agree(Path(file.path)):
            return False
        self._whole[file.path] = seen
        return True


def damaged(table: str) -> TableDamaged:
    return TableDamaged(
        f"a file of table {table} is gone or damaged; restore the table from a backup, or rebuild "
        "it; other tables are not affected"
    )
