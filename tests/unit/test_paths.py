"""Paths: what may name a file of a mount, and what must not get that far."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tristore.errors import InvalidPath
from tristore.filestore import paths

REFUSED = [
    "",
    "/",
    "/etc/passwd",
    "a/",
    "a//b",
    ".",
    "..",
    "../../etc/passwd",
    "a/../b",
    "a/./b",
    "a\\b",
    "..\\..\\x",
    "a\x00b",
    "a\r\nb",
    "a\x7f",
    "a\x85b",
    "\ud800",
    "a/\udcff",
    "CON",
    "con.txt",
    "a/NUL",
    "nul .txt",
    "COM1",
    "lpt9.log",
    "x" * 256,
    "ä" * 128,
    "/".join(["d" * 99] * 41),
    ".tristore",
    ".tristore/staging/x",
]


@pytest.mark.parametrize("path", REFUSED)
def test_a_dangerous_path_is_refused(path: str) -> None:
    with pytest.raises(InvalidPath):
        paths.check(path)


@pytest.mark.parametrize(
    "path",
    [
        "a",
        "in/f7.txt",
        "...",
        ".hidden/..x",
        "a b/ü/日本語",
        "console",
        "com",
        "com10",
        "x" * 255,
        "a/.tristore",
        "~root",
        "-rf",
        "%2e%2e",
    ],
)
def test_an_ordinary_path_is_taken_as_it_is(path: str) -> None:
    assert paths.check(path) == path


def test_a_refusal_does_not_repeat_what_was_sent() -> None:
    with pytest.raises(InvalidPath) as refused:
        paths.check("secret\x1b[31m/x")
    assert "secret" not in str(refused.value)


@given(st.text())
def test_whatever_is_taken_stays_below_the_mount(path: str) -> None:
    try:
        paths.check(path)
    except InvalidPath:
        return
    parts = path.split("/")
    assert not {"", ".", ".."} & set(parts) and "\x00" not in path
    assert all(paths.trackable(part) for part in parts)


def test_names_found_on_disk_are_tracked_only_if_a_path_may_hold_them() -> None:
    assert paths.trackable("f7.txt") and paths.trackable(".tristore")
    for name in ("a\\b", "a\nb", "NUL", "\udcff", "x" * 256, ".."):
        assert not paths.trackable(name)


def test_parents_are_the_directories_above() -> None:
    assert paths.parents("a/b/c") == ["a", "a/b"]
    assert paths.parents("a") == []
    assert (paths.name("a/b/c"), paths.folder("a/b/c"), paths.folder("a")) == ("c", "a/b", "")


def test_within_is_about_directories_and_not_about_letters() -> None:
    assert paths.within("data/ok/x", "data/ok") and paths.within("data/ok", "data/ok")
    assert not paths.within("data/okother", "data/ok")
    assert paths.within("anything", "")


def test_rebased_keeps_what_lies_below() -> None:
    assert paths.rebased("in/a/b.txt", "in/a", "out/z") == "out/z/b.txt"
    assert paths.rebased("in/a", "in/a", "z") == "z"
