"""The datasets as the driver sees them: their tables, and whether all that was told is in them."""

from dataclasses import dataclass
from datetime import datetime

import psycopg
from deltalake import DeltaTable
from psycopg.rows import dict_row

from tristore.db.queries import load
from tristore.errors import NotFound
from tristore.pipeline.session import PipelineConfig
from tristore.pipeline.table import Table
from tristore.timestore.dataset import Dataset
from tristore.timestore.snapshot import through_app

_sql = load("tristore.pipeline", "catalogue.sql")

GROWTH = "filestore_growth"


@dataclass(frozen=True, slots=True)
class Mark:
    """How far log and ingests had come at an instant of the database's clock."""

    at: datetime
    log: int
    ingests: int


def datasets(config: PipelineConfig) -> list[Dataset]:
    with psycopg.connect(config.database_url, row_factory=dict_row) as conn:
        return [Dataset.of(row) for row in conn.execute(_sql.datasets)]


def table_of(config: PipelineConfig, dataset: Dataset) -> Table:
    return Table(dataset.folder, config.tables.child(dataset.folder), dataset.partition_column)


def find(config: PipelineConfig, slug: str) -> Dataset:
    found = next((dataset for dataset in datasets(config) if dataset.slug == slug), None)
    if found is None:
        raise NotFound(f"there is no dataset {slug!r}; `tristore ts datasets list` shows them")
    return found


def mark(config: PipelineConfig) -> Mark:
    with psycopg.connect(config.database_url) as conn:
        row = conn.execute(_sql.heads).fetchone()
    assert row is not None
    return Mark(*row)


def holds(config: PipelineConfig, dataset: Dataset, table: DeltaTable | None, mark: Mark) -> bool:
    """Whether everything that was there at the mark is in the table, which may not have begun."""
    if dataset.kind == "log":
        app = through_app(dataset.slug)
        return ((table.transaction_version(app) if table else 0) or 0) >= mark.log
    given = {"dataset": dataset.slug, "position": mark.ingests}
    with psycopg.connect(config.database_url) as conn:
        row = conn.execute(_sql.staged, given).fetchone()
    assert row is not None
    return not row[0]
