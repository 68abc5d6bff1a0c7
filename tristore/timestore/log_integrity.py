"""Whether the Delta log of a table says what was written: its commits, and its checkpoints."""

from pathlib import Path

from tristore.timestore import checksums, commit_digest
from tristore.timestore.place import Place


def refuse_checkpoint(place: Place, after: int = -1) -> int:
    """The version of the newest checkpoint, -1 without one; refused if it is newer than `after`
    and damaged. Looked at before a table is loaded: it may bring down what reads it."""
    if place.local is None:
        return -1
    found = list((place.local / "_delta_log").glob("*.checkpoint*.parquet"))
    newest = max(map(_version, found), default=-1)
    for file in found:
        if after < _version(file) == newest and not checksums.agree(file):
            raise ValueError(f"the checkpoint of version {newest} is not as it was written")
    return newest


def refuse_changed(place: Place, after: int, through: int) -> None:
    """Of `(after, through]` the newest checkpoint, and the commits that none stands for."""
    if place.local is None:
        return
    newest = refuse_checkpoint(place, after)
    for version in range(max(after, newest) + 1, through + 1):
        if not commit_digest.agrees(place.local / "_delta_log" / f"{version:020}.json"):
            raise ValueError(f"commit {version} is not as it was written")


def _version(file: Path) -> int:
    return int(file.name[:20])
