"""Removes files that no reader can need: replaced ones, orphans, and those of deleted datasets."""

import logging
import re
import shutil
import time
from pathlib import Path

from deltalake import DeltaTable

from tristore.pipeline import log_checkpoints, s3_folders
from tristore.pipeline.catalogue import datasets, table_of
from tristore.pipeline.tools import Tools
from tristore.timestore.dataset import Dataset
from tristore.timestore.place import Place

# How the folder of a user's dataset is called; nothing else is ever taken for one.
_FOLDER = re.compile(r"[a-z][a-z0-9_]{0,62}-[0-9a-f]{8}")
_HOUR = 3600
_log = logging.getLogger(__name__)


def vacuum(tools: Tools, dataset: Dataset, keep_hours: int | None = None) -> int:
    """A query reads one version to its end, so what any version of the last hours names stays;
    the rest goes, and so do the entries of the Delta log that led there. `keep_hours` is of what
    was replaced: a file that no version names may be of a commit that is still to come."""
    usual = tools.config.upkeep.keep_hours
    hours = usual if keep_hours is None else keep_hours
    table = table_of(tools.config, dataset)
    with tools.locks.of(table.name):
        handle = _with_properties(log_checkpoints.whole(table.place), usual)
    removed = _remove_files(handle, hours, orphans=False)
    removed += _remove_files(handle, max(hours, usual), orphans=True)
    if table.place.local is not None:
        _remove_empty(table.place.local / "data", max(hours, usual))
    log_checkpoints.make(table.place)
    table.place.table().cleanup_metadata()
    log_checkpoints.sweep(table.place)
    return len(removed)


def _remove_files(handle: DeltaTable, hours: int, *, orphans: bool) -> list[str]:
    return handle.vacuum(
        hours,
        dry_run=False,
        enforce_retention_duration=False,
        full=orphans,
        post_commithook_properties=log_checkpoints.NONE,
    )


def vacuum_deleted(tools: Tools, keep_hours: int | None = None) -> int:
    """Tables that no dataset has any more."""
    hours = tools.config.upkeep.keep_hours if keep_hours is None else keep_hours
    latest = time.time() - hours * _HOUR
    live = {dataset.folder for dataset in datasets(tools.config)}
    place = tools.config.tables
    found = _folders(place.local) if place.local else s3_folders.names(place)
    gone = [name for name in found if _FOLDER.fullmatch(name) and name not in live]
    return sum(_remove(place, name, latest) for name in gone)


def _folders(root: Path) -> list[str]:
    return [folder.name for folder in root.iterdir()] if root.exists() else []


def _remove(place: Place, name: str, latest: float) -> bool:
    """By its newest commit: a table stays while its last readers may still be there."""
    if place.local is None:
        return s3_folders.remove(place, name, latest)
    log = place.local / name / "_delta_log"
    if (log if log.exists() else log.parent).stat().st_mtime > latest:
        return False
    shutil.rmtree(log.parent)
    return True


def _with_properties(handle: DeltaTable, hours: int) -> DeltaTable:
    """A commit a second would leave millions of entries in a log that is kept for a month."""
    wanted = {
        "delta.logRetentionDuration": f"interval {hours} hours",
        "delta.deletedFileRetentionDuration": f"interval {max(hours, 24)} hours",
    }
    if any(handle.metadata().configuration.get(name) != text for name, text in wanted.items()):
        handle.alter.set_table_properties(wanted, post_commithook_properties=log_checkpoints.NONE)
    return handle


def _remove_empty(folder: Path, hours: int) -> None:
    found = [path for path in folder.rglob("*") if path.is_dir()] if folder.exists() else []
    for path in sorted(found, key=lambda path: len(path.parts), reverse=True):
        if not any(path.iterdir()) and _aged(path, hours):
            path.rmdir()


def _aged(path: Path, hours: int) -> bool:
    return path.stat().st_mtime <= time.time() - hours * _HOUR
