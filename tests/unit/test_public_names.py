"""What `from tristore import …` offers."""

import subprocess
import sys

import pytest

import tristore


@pytest.mark.parametrize("name", sorted(tristore._HOMES))
def test_every_public_name_is_found(name: str) -> None:
    assert getattr(tristore, name).__name__ == name
    assert name in dir(tristore)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        _ = tristore.nonsense


def test_the_package_alone_loads_no_client() -> None:
    program = "import sys, tristore; print([m for m in sys.modules if m in {heavy}])"
    heavy = {"psycopg", "bullmq", "redis", "httpx", "pydantic", "fastapi"}
    run = subprocess.run(
        [sys.executable, "-c", program.replace("{heavy}", repr(heavy))],
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.strip() == "[]"
