"""One Spark session for the whole run; a database, tables and checkpoint of its own per test."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.pipeline.driver import SHORT_LIVED
from tests.support.s3 import S3Server, moto
from tristore.local.java import java_home
from tristore.pipeline.session import PipelineConfig, make_session


@pytest.fixture(scope="session")
def java(tmp_path_factory: pytest.TempPathFactory) -> str:
    os.environ.update(SHORT_LIVED)
    return str(java_home(None, tmp_path_factory.mktemp("java")))


@pytest.fixture(scope="session")
def spark(java: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    unused = tmp_path_factory.mktemp("session")
    config = PipelineConfig(
        "", str(unused), unused, java_home=java, master="local[2]", driver_memory="512m"
    )
    session = make_session(config)
    yield session
    session.stop()


@pytest.fixture
def config(database_url: str, java: str, tmp_path: Path) -> PipelineConfig:
    folder = tmp_path / "it's 50%c ż"
    return PipelineConfig(
        database_url=database_url,
        tables_root=str(folder / "tables"),
        checkpoint=folder / "pipeline" / "checkpoint",
        java_home=java,
        master="local[2]",
        driver_memory="512m",
        partition_rows=200,
    )


@pytest.fixture(scope="session")
def server() -> Iterator[S3Server]:
    """S3 with conditional writes; each test has a prefix of its own there."""
    with moto() as server:
        yield server
