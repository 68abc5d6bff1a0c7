"""A filestore on a folder and a database of its own."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.support import filestore as support
from tests.support.api import own_database
from tests.support.filestore import SMALL_CHUNKS, new_mount
from tristore.filestore.model import Mount
from tristore.filestore.store import Filestore


@pytest.fixture(scope="module")
def database(server_url: str) -> Iterator[str]:
    with own_database(server_url) as url:
        yield url


@pytest.fixture
async def store(database: str, tmp_path: Path) -> AsyncIterator[Filestore]:
    settings = support.settings_for(database, tmp_path / "data", SMALL_CHUNKS)
    async with support.own_filestore(settings) as filestore:
        yield filestore


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "files"


@pytest.fixture
async def mount(store: Filestore, folder: Path) -> Mount:
    return await new_mount(store, folder)
