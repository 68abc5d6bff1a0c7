"""Which folders of this machine may be mounted."""

import ipaddress
from pathlib import Path

from tristore.config import Settings
from tristore.errors import MountRefused

# Folders of the operating system; nothing under them is anybody's data, but what is named below.
_SYSTEM = ("bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "root", "run")
_SYSTEM_PATHS = [Path("/") / name for name in (*_SYSTEM, "sbin", "snap", "sys", "usr", "var")]
_DATA_WITHIN = [Path(p) for p in ("/dev/shm", "/root", "/run/media", "/var/lib", "/var/tmp")]


def check_root(root: str, settings: Settings) -> None:
    """Raises MountRefused; does not ask whether the folder is there."""
    folder = Path(root)
    if "\0" in root or not folder.is_absolute():
        raise MountRefused("the root of a local mount is an absolute path of a folder")
    # Links are followed once, here: a root is named by its owner, unlike the paths below it.
    folder = folder.resolve()
    data = settings.data_dir.absolute().resolve()
    if folder.is_relative_to(data) or data.is_relative_to(folder):
        raise MountRefused("the platform's own data folder can be no part of a mount")
    if allowed := allowed_roots(settings):
        _check_listed(folder, allowed)
    else:
        _check_unlisted(folder, settings)


def allowed_roots(settings: Settings) -> list[Path]:
    listed = settings.filestore.allowed_roots.split(",")
    return [Path(root.strip()).absolute().resolve() for root in listed if root.strip()]


def _check_listed(folder: Path, allowed: list[Path]) -> None:
    if not any(folder.is_relative_to(root) for root in allowed):
        raise MountRefused(
            "the folder is not under one of TRISTORE_FILESTORE__ALLOWED_ROOTS; add it there"
        )


def _check_unlisted(folder: Path, settings: Settings) -> None:
    if not _loopback(settings.host):
        raise MountRefused(
            "the API listens beyond this machine, so local mounts need "
            "TRISTORE_FILESTORE__ALLOWED_ROOTS to name the folders they may use"
        )
    if system_folder(folder):
        raise MountRefused("that is a folder of the operating system; mount one that holds data")


def system_folder(folder: Path) -> bool:
    if any(folder.is_relative_to(data) and folder != data for data in _DATA_WITHIN):
        return False
    return folder == Path("/") or any(folder.is_relative_to(path) for path in _SYSTEM_PATHS)


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
