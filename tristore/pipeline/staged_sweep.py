"""Staged files that nobody needs: their rows are in a table, or no batch ever named them."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime

from tristore.pipeline import batches
from tristore.pipeline.s3_files import store
from tristore.pipeline.session import PipelineConfig
from tristore.timestore.place import Place
from tristore.timestore.staging import AREA

_PAUSE_SECONDS = 600.0
_AT_ONCE = 1000


class Sweep:
    """Now and then, however often it is called."""

    def __init__(self) -> None:
        self._next = 0.0

    def __call__(self, config: PipelineConfig) -> None:
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + _PAUSE_SECONDS
            sweep(config)


def sweep(config: PipelineConfig) -> int:
    """Only what is older than any query that could still read it, or ingest that could yet name
    it; returns how many went."""
    latest = time.time() - config.staged_keep_seconds
    old = [name for name, made in _files(config.tables) if made < latest]
    gone = 0
    for first in range(0, len(old), _AT_ONCE):
        part = old[first : first + _AT_ONCE]
        kept = batches.awaited(config.database_url, part)
        unwanted = [name for name in part if name not in kept]
        _remove(config.tables, unwanted)
        gone += len(unwanted)
    return gone


def _files(place: Place) -> Iterator[tuple[str, float]]:
    """The name below the tables' place, and when it was made."""
    if place.local is not None:
        for path in (place.local / AREA).glob("*/*.parquet"):
            try:
                yield path.relative_to(place.local).as_posix(), path.stat().st_mtime
            except FileNotFoundError:
                continue
        return
    for page in store(place.uri, place.options).list(f"{AREA}/"):
        for found in page:
            made = found["last_modified"]
            assert isinstance(made, datetime)
            yield str(found["path"]), made.astimezone(UTC).timestamp()


def _remove(place: Place, names: list[str]) -> None:
    if place.local is None:
        if names:
            store(place.uri, place.options).delete(names)
        return
    for name in names:
        (place.local / name).unlink(missing_ok=True)
