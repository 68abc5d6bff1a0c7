"""The stage of a fault: small counts, the suite's servers."""

from pathlib import Path

import pytest

from faults.stage import Stage
from tristore.config import Settings


@pytest.fixture
def stage(settings: Settings, tmp_path: Path) -> Stage:
    return Stage(settings, tmp_path, events=300, faults=2)
