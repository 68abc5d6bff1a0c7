"""Folders on S3, which are names that begin alike: which there are, and removing an old one."""

import math
from typing import Any

from tristore.pipeline.s3_files import store
from tristore.timestore.place import Place


def names(place: Place) -> list[str]:
    import obstore

    found = obstore.list_with_delimiter(store(place.uri, place.options))
    return [prefix.rstrip("/").rpartition("/")[2] for prefix in found["common_prefixes"]]


def files(place: Place, name: str) -> list[Any]:
    import obstore

    pages = obstore.list(store(place.uri, place.options), f"{name}/")
    return [item for page in pages for item in page]


def remove(place: Place, name: str, latest: float = math.inf) -> bool:
    """Unless something in it is newer than that."""
    import obstore

    found = files(place, name)
    if any(item["last_modified"].timestamp() > latest for item in found):
        return False
    obstore.delete(store(place.uri, place.options), [item["path"] for item in found])
    return True
