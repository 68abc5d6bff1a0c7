"""Folders on S3, which are names that begin alike: which there are, and removing an old one."""

from tristore.pipeline.s3_files import store
from tristore.timestore.place import Place


def names(place: Place) -> list[str]:
    import obstore

    found = obstore.list_with_delimiter(store(place.uri, place.options))
    return [prefix.rstrip("/").rpartition("/")[2] for prefix in found["common_prefixes"]]


def remove(place: Place, name: str, latest: float) -> bool:
    """Unless something in it is newer than that."""
    import obstore

    bucket = store(place.uri, place.options)
    found = [item for page in obstore.list(bucket, f"{name}/") for item in page]
    if any(item["last_modified"].timestamp() > latest for item in found):
        return False
    obstore.delete(bucket, [item["path"] for item in found])
    return True
