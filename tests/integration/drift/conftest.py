"""A filestore whose drift is looked after."""

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.support.api import own_database
from tests.support.filestore import own_filestore, settings_for
from tests.support.upkeep import kept_up
from tristore.config import Settings
from tristore.filestore.store import Filestore


@pytest.fixture(scope="module")
def settings(server_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    with own_database(server_url) as url:
        yield settings_for(url, tmp_path_factory.mktemp("data"))


@pytest.fixture
async def filestore(settings: Settings) -> AsyncIterator[Filestore]:
    async with own_filestore(settings) as filestore, kept_up(filestore):
        yield filestore
