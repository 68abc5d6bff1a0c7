"""Files and folders only their owner can read; what exists already keeps its mode."""

import os
from collections.abc import Callable
from pathlib import Path


def make_folder(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)


def write(path: Path, text: str) -> None:
    """Replaces the file whole: a reader sees the old text or the new one."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}.new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.rename(path)
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Without it a rename can be undone by a power failure."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def keep(path: Path, make: Callable[[], str]) -> str:
    """The text kept in the file; made and kept if there is none yet."""
    if not path.exists():
        write(path, make() + "\n")
    return path.read_text().strip()
