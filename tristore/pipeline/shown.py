"""The last step of an export: its files are shown with a manifest, all at once."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

from tristore.errors import Terminal
from tristore.pipeline import s3_files, s3_folders
from tristore.pipeline.exports import Export
from tristore.timestore.place import Place

_MANIFEST = "_export.json"


def aside(place: Place, export: Export) -> str:
    """S3 knows no renaming: there the files lie where they will be, and the manifest comes last."""
    return _claims(export) if place.local else export.target


def make_room(place: Place, export: Export) -> None:
    """Removes what an earlier attempt has left."""
    drop(place, export)
    if place.local is not None:
        (place.local / aside(place, export)).mkdir(parents=True)
        return
    if s3_folders.files(place, export.target):
        raise _taken(export)
    _claim(place, export)


def drop(place: Place, export: Export) -> None:
    """What was written aside, and will never be shown."""
    if place.local is not None:
        shutil.rmtree(place.local / aside(place, export), ignore_errors=True)
    elif s3_folders.files(place, _claims(export)):
        s3_folders.remove(place, export.target)
        s3_folders.remove(place, _claims(export))


def _claim(place: Place, export: Export) -> None:
    """Says on S3 that what will lie at the target is ours: an attempt may end before it looks."""
    import obstore

    store = s3_files.store(place.uri, place.options)
    obstore.put(store, f"{_claims(export)}/claim", export.target.encode())


def _claims(export: Export) -> str:
    return f".{export.id}.partial"


def show(place: Place, export: Export, told: dict[str, Any]) -> None:
    text = json.dumps(told).encode()
    if place.local is None:
        import obstore

        obstore.put(s3_files.store(place.uri, place.options), _manifest(export), text)
        s3_folders.remove(place, _claims(export))
        return
    folder = place.local / aside(place, export)
    (folder / _MANIFEST).write_bytes(text)
    _sync(folder)
    folder.rename(place.local / export.target)
    _sync_folder(place.local)


def find(place: Place, export: Export) -> dict[str, Any] | None:
    """What a driver that was killed before it could tell has shown already."""
    if place.local is None:
        return _stored_manifest(place, export)
    file = place.local / _manifest(export)
    return _own(json.loads(file.read_bytes()), export) if file.exists() else None


def _stored_manifest(place: Place, export: Export) -> dict[str, Any] | None:
    import obstore

    try:
        found = obstore.get(s3_files.store(place.uri, place.options), _manifest(export))
    except FileNotFoundError:
        return None
    return _own(json.loads(bytes(found.bytes())), export)


def _own(told: dict[str, Any], export: Export) -> dict[str, Any]:
    if told["exportId"] != export.id:
        raise _taken(export)
    return told


def _taken(export: Export) -> Terminal:
    return Terminal(f"something lies at {export.target} already; choose another target")


def _manifest(export: Export) -> str:
    return f"{export.target}/{_MANIFEST}"


def _sync(folder: Path) -> None:
    """An export that is told of must outlive a power failure."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
        else:
            _sync_folder(path)
    _sync_folder(folder)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
