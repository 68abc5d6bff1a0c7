"""The samples of docs/timestore.md that read the tables without us, run as they stand there."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.pipeline.filestore_story import story
from tests.support.database import rows
from tristore.pipeline import jobs
from tristore.pipeline.session import PipelineConfig

PAGE = Path(__file__).parents[2] / "docs/timestore.md"
CHURNED = """
    SELECT mount, sum(abs(size_delta)) AS bytes FROM bus.filestore_activity_v
    GROUP BY mount ORDER BY mount
"""
GROWN = """
    SELECT mount, sum(size_delta) AS bytes FROM bus.filestore_activity_v
    WHERE kind = 'file' GROUP BY mount ORDER BY mount
"""
TYPES = "SELECT type, count(*) AS n FROM bus.workflow_events GROUP BY type ORDER BY type"


def test_every_engine_of_the_page_reads_what_the_log_says(
    spark: SparkSession, config: PipelineConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Polars looks for a folder with a blank in its name under the name that a URL would have.
    monkeypatch.chdir(tmp_path)
    story(config.database_url)
    jobs.run_available(replace(config, tables_root=str(tmp_path / "tables")), spark)

    found: dict[str, Any] = {"spark": spark}
    exec(compile(_samples(), PAGE.name, "exec"), found)

    assert sorted(found["churned"].fetchall()) == _logged(config, CHURNED)
    assert sorted(map(tuple, found["types"].collect())) == _logged(config, TYPES)
    assert sorted(found["grown"].rows()) == _logged(config, GROWN)


def _samples() -> str:
    section = PAGE.read_text("utf-8").partition("## Reading the tables")[2]
    return section.partition("```python\n")[2].partition("```")[0]


def _logged(config: PipelineConfig, query: str) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in rows(config.database_url, query)]
