"""`tristore fs` against a running platform, as a person types it."""

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.support.api import Api, make_token, own_api
from tests.support.command import tristore
from tests.support.files import SCOPES
from tests.support.parts import environment
from tristore.cli import app


@pytest.fixture(scope="module")
def api(server_url: str, redis_url: str) -> Iterator[Api]:
    with own_api(server_url, redis_url, workers="reconcile") as api:
        yield api


@pytest.fixture(scope="module")
def where(api: Api) -> dict[str, str]:
    token = make_token(api.database, *SCOPES)
    return {"TRISTORE_URL": api.url, "TRISTORE_TOKEN": token}


@pytest.fixture
def shown(api: Api, where: dict[str, str]) -> Callable[..., str]:
    """What is printed by a command that must succeed; here, since a process each takes long."""
    settings = environment(api.settings, COLUMNS="200", **where)

    def run(*argv: str) -> str:
        done = CliRunner().invoke(app, ["fs", *argv], env=settings)
        assert done.exit_code == 0, (argv, done.output, done.exception)
        return done.stdout

    return run


@pytest.fixture
def fs(shown: Callable[..., str]) -> Callable[..., Any]:
    """The same as JSON."""
    return lambda *argv: json.loads(shown(*argv, "--json"))


def test_a_day_with_files(
    fs: Callable[..., Any], shown: Callable[..., str], tmp_path: Path
) -> None:
    root, local = tmp_path / "root", tmp_path / "local"
    root.mkdir()
    local.mkdir()
    (root / "old").mkdir()
    (root / "old/there.txt").write_text("before")
    assert fs("mount", "day", str(root))["name"] == "day"
    assert fs("import", "day:", "--checksums")["progress"]["imported"] == 2
    content = os.urandom(300_000)
    (local / "big file.bin").write_bytes(content)
    stored = fs("put", str(local / "big file.bin"), "day:in/")
    assert stored["node"]["path"] == "in/big file.bin"
    assert "copied to day:out/b" in shown("cp", "day:in/big file.bin", "day:out/b")
    assert "(2 nodes)" in shown("mv", "day:out", "day:kept")
    got = fs("get", "day:kept/b", str(local))
    assert (local / "b").read_bytes() == content
    assert got["checksum"] == f"sha256:{hashlib.sha256(content).hexdigest()}"
    assert sorted(p.name for p in local.iterdir()) == ["b", "big file.bin"]
    assert shown("cat", "day:old/there.txt") == "before"
    listed = shown("ls", "day:")
    assert all(name in listed for name in ("in/", "kept/", "old/", "300.0 kB"))
    drawn = shown("tree", "day:")
    assert "there.txt" in drawn and "big file.bin" in drawn and "kept/  300.0 kB, 1 file\n" in drawn
    shown("mkdir", "day:empty/deep")
    shown("rm", "-r", "day:in")
    assert not (root / "in").exists() and (root / "empty/deep").is_dir()
    assert len(fs("history", "day:kept/b")["items"]) == 2
    (root / "old/there.txt").write_text("changed behind its back")
    assert fs("reconcile", "day:")["state"] == "completed"
    assert "day" in shown("mounts")
    assert fs("doctor")["ok"] is True


def test_the_quick_start_does_what_it_says(
    shown: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (Path(__file__).parents[2] / "docs/filestore.md").read_text("utf-8")
    block = page.split("```sh\n")[1].split("```")[0]
    lines = [line.split("#")[0].split() for line in block.splitlines()]
    assert len(lines) == 7
    root = tmp_path / "media"
    root.mkdir()
    (root / "there").write_text("before")
    (tmp_path / "report.pdf").write_text("a report")
    monkeypatch.chdir(tmp_path)
    for program, part, *argv in lines:
        assert (program, part) == ("tristore", "fs")
        shown(*(str(root) if word == "/srv/media" else word for word in argv))
    assert (root / "archive/report.pdf").read_text() == "a report"


def test_a_folder_is_stored_whole(
    fs: Callable[..., Any], api: Api, where: dict[str, str], tmp_path: Path
) -> None:
    root, local = tmp_path / "root", tmp_path / "photos"
    (local / "2026/11").mkdir(parents=True)
    root.mkdir()
    for name in ("a", "2026/b", "2026/11/c"):
        (local / name).write_text(name)
    fs("mount", "whole", str(root))
    fs("put", "-r", str(local), "whole:")
    node = fs("stat", "whole:photos")
    assert node["rollup"] == {"sizeBytes": 16, "files": 3, "directories": 2}
    done = tristore(api.settings, "fs", "put", "-", "whole:typed", stdin="from stdin", **where)
    assert done.returncode == 0, done.stderr
    assert (root / "typed").read_text() == "from stdin"


def test_refusals_are_one_line_and_wrong_usage_is_exit_2(
    api: Api, where: dict[str, str], tmp_path: Path
) -> None:
    for argv, words in (
        (["stat", "nowhere:x"], "nowhere"),
        (["get", "nowhere:x", str(tmp_path)], "nowhere"),
        (["put", str(tmp_path / "absent"), "nowhere:x"], "cannot be read"),
        (["mount", "m", str(tmp_path / "absent")], "no such folder"),
    ):
        done = tristore(api.settings, "fs", *argv, **where)
        assert (done.returncode, done.stdout) == (1, ""), (argv, done.stdout)
        assert done.stderr.startswith("tristore: ") and words in done.stderr, done.stderr
        assert done.stderr.count("\n") == 1, done.stderr
    for wrong in (["ls", "no-colon"], ["put", str(tmp_path), "m:"], ["mount", "m"]):
        assert CliRunner().invoke(app, ["fs", *wrong], env=where).exit_code == 2, wrong
    assert list(tmp_path.iterdir()) == []
