"""How tables are kept in shape: when files are merged, removed, and looked at again."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Upkeep:
    """Compaction begins at more than `compact_files` small files in a partition; a file that no
    version younger than `keep_hours` names is removed."""

    seconds: float = 5
    compact_files: int = 40
    target_bytes: int = 128 * 2**20
    keep_hours: int = 24
    retention_seconds: float = 60
    vacuum_seconds: float = 3600
    # Where exports are written; unset: beside the tables' folder.
    exports_root: str | None = None
