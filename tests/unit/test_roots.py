"""Which folders may be mounted."""

from pathlib import Path

import pytest

from tristore.config import FilestoreSettings, Settings
from tristore.errors import MountRefused
from tristore.filestore.roots import check_root


def settings(data: Path, *, roots: str = "", host: str = "127.0.0.1") -> Settings:
    return Settings(data_dir=data, host=host, filestore=FilestoreSettings(allowed_roots=roots))


@pytest.mark.parametrize(
    "root",
    ["/", "/etc", "/etc/ssh", "/usr", "/usr/lib", "/bin", "/proc/self", "/sys", "/dev", "/boot"],
)
def test_a_folder_of_the_system_is_refused(tmp_path: Path, root: str) -> None:
    with pytest.raises(MountRefused):
        check_root(root, settings(tmp_path / "data"))


@pytest.mark.parametrize("root", ["", "data", "./data", "../data", "/tmp/a\0b"])
def test_a_root_is_an_absolute_path(tmp_path: Path, root: str) -> None:
    with pytest.raises(MountRefused):
        check_root(root, settings(tmp_path / "data"))


def test_a_folder_of_data_is_allowed_on_loopback(tmp_path: Path) -> None:
    check_root(str(tmp_path / "files"), settings(tmp_path / "data"))
    check_root("/srv/files", settings(tmp_path / "data", host="localhost"))


def test_beyond_loopback_folders_must_be_listed(tmp_path: Path) -> None:
    with pytest.raises(MountRefused, match="ALLOWED_ROOTS"):
        check_root(str(tmp_path / "files"), settings(tmp_path / "data", host="0.0.0.0"))
    listed = settings(tmp_path / "data", host="0.0.0.0", roots=f"/nowhere, {tmp_path}/files")
    check_root(str(tmp_path / "files"), listed)
    check_root(str(tmp_path / "files/below"), listed)


def test_a_listed_folder_is_no_prefix_of_names(tmp_path: Path) -> None:
    listed = settings(tmp_path / "data", roots=str(tmp_path / "ok"))
    for other in ("okother", "ok/../other", "elsewhere"):
        with pytest.raises(MountRefused, match="ALLOWED_ROOTS"):
            check_root(str(tmp_path / other), listed)


def test_a_link_does_not_lead_out_of_the_listed_folders(tmp_path: Path) -> None:
    (tmp_path / "ok").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "ok/link").symlink_to(tmp_path / "outside")
    with pytest.raises(MountRefused):
        check_root(str(tmp_path / "ok/link"), settings(tmp_path / "data", roots=f"{tmp_path}/ok"))


@pytest.mark.parametrize("roots", ["", "{0}"])
def test_the_data_folder_is_never_part_of_a_mount(tmp_path: Path, roots: str) -> None:
    mine = settings(tmp_path / "data", roots=roots.format(tmp_path))
    for root in (tmp_path, tmp_path / "data", tmp_path / "data/tables"):
        with pytest.raises(MountRefused, match="data folder"):
            check_root(str(root), mine)
