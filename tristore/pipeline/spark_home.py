"""A home for Spark without its own copy of PySpark: its Python processes then start faster.

Spark puts `python/lib/pyspark.zip` of its home before everything else that its Python processes
import. From an archive they compile PySpark anew at every start, which takes three times as long
as the installed package, and a process that plans a source is given up after ten seconds.
"""

from contextlib import suppress
from pathlib import Path

import pyspark

_NEEDED = ("bin", "jars")


def spark_home(folder: Path) -> Path:
    installed = Path(pyspark.__file__).parent
    folder.mkdir(parents=True, exist_ok=True)
    for name in _NEEDED:
        _link(folder / name, installed / name)
    return folder


def _link(link: Path, target: Path) -> None:
    """Anew if it leads elsewhere: PySpark may have been installed to another place since."""
    if link.is_symlink() and link.readlink() == target:
        return
    link.unlink(missing_ok=True)
    # A second driver on the same folder makes the same link.
    with suppress(FileExistsError):
        link.symlink_to(target)
