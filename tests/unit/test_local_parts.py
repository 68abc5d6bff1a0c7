"""Which parts `tristore up` runs."""

from pathlib import Path

import pytest

from tristore.cli.status import look
from tristore.cli.up import parts
from tristore.config import MetastoreSettings, Settings
from tristore.errors import NotFound


def names(settings: Settings, *, pipeline: bool = True) -> list[str]:
    return [part.name for part in parts(settings, pipeline=pipeline)]


def test_each_part_is_a_process_of_its_own() -> None:
    expected = ["api", "relay", "ingress", "reconcile", "watch", "sync", "pipeline"]
    assert names(Settings(redis_url=None)) == expected


def test_without_a_queue_the_relay_does_the_ingress() -> None:
    assert "ingress" not in names(Settings(redis_url="inline"))


def test_without_the_sync_nobody_keeps_records_of_files() -> None:
    off = MetastoreSettings(filestore_sync=False)
    assert "sync" not in names(Settings(metastore=off))


def test_the_pipeline_can_be_left_out() -> None:
    assert "pipeline" not in names(Settings(), pipeline=False)


def test_where_nothing_runs_the_next_step_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=f"tristore up --data-dir {tmp_path}"):
        look(tmp_path)
