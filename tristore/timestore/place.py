"""Where tables lie: a folder or a prefix of an S3 bucket, and how libraries reach it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tristore.config import Settings
from tristore.errors import Unavailable

if TYPE_CHECKING:
    from deltalake import DeltaTable


@dataclass(frozen=True, slots=True)
class Place:
    """`options` are the storage options of deltalake and obstore; a folder has none."""

    uri: str
    # Carries a secret key, which has no place in logs and tracebacks.
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def local(self) -> Path | None:
        """None on S3."""
        return None if "://" in self.uri else Path(self.uri)

    def child(self, name: str) -> "Place":
        return Place(f"{self.uri.rstrip('/')}/{name}", self.options)

    def exists(self) -> bool:
        """Whether a Delta table has begun here."""
        from deltalake import DeltaTable

        return DeltaTable.is_deltatable(self.uri, dict(self.options) or None)

    def table(self, version: int | None = None) -> "DeltaTable":
        """The newest version, unless one is named; imported here, since the API never loads it."""
        from deltalake import DeltaTable

        # A folder's name is given as it is: of a text delta-rs would make a URL.
        return DeltaTable(self.local or self.uri, version, dict(self.options) or None)

    def file(self, relative: str) -> str:
        """What a reader of Parquet opens; `relative` is the path in the Delta log, undecoded."""
        return f"{self.uri.rstrip('/')}/{relative}"


def away(place: Place, error: Exception) -> Unavailable | None:
    """What an error of deltalake means where a bucket, and not a table, is in trouble."""
    if place.local is None and isinstance(error, OSError) and type(error) is not FileNotFoundError:
        return Unavailable(
            "the tables' S3 storage does not answer, or refuses the keys; try again when it does"
        )
    return None


def tables_place(settings: Settings) -> Place:
    """The place below which every table has a child of its own."""
    return Place(settings.tables_root(), settings.tables_options())
