"""No way out of a root, with the kernel's help and without it."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tristore.filestore import beneath
from tristore.filestore.beneath import Beneath


@pytest.fixture(params=["kernel", "walking"])
def root(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Beneath]:
    if request.param == "walking":
        monkeypatch.setattr(beneath, "kernel_resolves", lambda: False)
    inside, outside = tmp_path / "ok", tmp_path / "okother"
    (inside / "a/b").mkdir(parents=True)
    outside.mkdir()
    (inside / "file").write_text("1")
    (inside / "absolute").symlink_to(outside)
    (inside / "relative").symlink_to("../okother")
    (inside / "a/within").symlink_to("b")
    (inside / "magic").symlink_to("/proc/self/cwd")
    opened = Beneath(inside)
    yield opened
    opened.close()


@pytest.mark.parametrize("path", ["", "a", "a/b"])
def test_a_directory_below_is_opened(root: Beneath, tmp_path: Path, path: str) -> None:
    with root.directory(path) as fd:
        assert os.path.samestat(os.fstat(fd), os.stat(tmp_path / "ok" / path))


@pytest.mark.parametrize("path", ["absolute", "relative", "a/within", "magic", "a/within/x"])
def test_a_link_is_not_followed_wherever_it_leads(root: Beneath, path: str) -> None:
    with pytest.raises(OSError) as refused:
        root.open_directory(path)
    assert refused.value.errno == errno.ELOOP


@pytest.mark.parametrize("path", ["..", "a/../..", "../okother", "a/../../okother"])
def test_there_is_no_way_up(root: Beneath, path: str) -> None:
    with pytest.raises(OSError) as refused:
        root.open_directory(path)
    assert refused.value.errno == errno.EXDEV


@pytest.mark.parametrize(
    ("path", "expected"),
    [("none", FileNotFoundError), ("file", NotADirectoryError), ("file/x", NotADirectoryError)],
)
def test_what_is_no_directory_is_told(root: Beneath, path: str, expected: type[OSError]) -> None:
    with pytest.raises(expected):
        root.open_directory(path)


def test_no_descriptor_is_left_behind(root: Beneath) -> None:
    before = os.listdir("/proc/self/fd")
    for path in ("a/b", "absolute", "none", "a/none", ".."):
        try:
            os.close(root.open_directory(path))
        except OSError:
            continue
    assert len(os.listdir("/proc/self/fd")) == len(before)


def test_this_kernel_is_asked_by_its_own_call() -> None:
    """Where it is there (Linux 5.6 and newer, no sandbox against it) it must be found."""
    release = tuple(int(part) for part in os.uname().release.split(".")[:2])
    assert beneath.kernel_resolves() or release < (5, 6) or not Path("/proc/self").exists()
