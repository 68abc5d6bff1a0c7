"""Paths from the root of a mount: which are allowed, and how they hang together."""

import re
from collections.abc import Iterator

from tristore.errors import InvalidPath

MAX_NAME_BYTES = 255
MAX_PATH_BYTES = 4096
# The filestore's own folder at the root of a mount: staging and trash.
RESERVED = ".tristore"
_DEVICE = re.compile(r"(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$)( *\..*)? *", re.I)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def check(path: str) -> str:
    """The path itself, or InvalidPath, which says what is wrong with it."""
    if not path:
        raise InvalidPath("the path is empty; name a file or directory below the mount")
    if path[0] == "/" or path[-1] == "/":
        raise InvalidPath("a path has no slash at its beginning or end")
    try:
        size = len(path.encode("utf-8"))
    except UnicodeEncodeError:
        raise InvalidPath("the path is not valid UTF-8") from None
    if size > MAX_PATH_BYTES:
        raise InvalidPath(f"the path has {size} bytes; the most is {MAX_PATH_BYTES}")
    for part in path.split("/"):
        if wrong := _wrong(part):
            raise InvalidPath(f"the path has {wrong}")
    if path.split("/", 1)[0] == RESERVED:
        raise InvalidPath(f"{RESERVED} belongs to the filestore; choose another name")
    return path


def check_prefix(prefix: str) -> str:
    """A path, or nothing for the whole mount; a slash at the end means the same as none."""
    trimmed = prefix[:-1] if prefix.endswith("/") and len(prefix) > 1 else prefix
    return check(trimmed) if trimmed else ""


def trackable(name: str) -> bool:
    """Whether a name found on a mount can stand in a path of ours; others are passed over."""
    return is_text(name) and "/" not in name and _wrong(name) is None


def is_text(found: str) -> bool:
    """Whether a name or path was UTF-8 on its mount; half characters stand for what was not."""
    try:
        found.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _wrong(part: str) -> str | None:
    if not part:
        return "an empty name between two slashes"
    if part in (".", ".."):
        return f"the name {part!r}, which means another place"
    if "\\" in part or _CONTROL.search(part):
        return "a backslash or a control character"
    if len(part.encode("utf-8")) > MAX_NAME_BYTES:
        return f"a name longer than {MAX_NAME_BYTES} bytes"
    if _DEVICE.fullmatch(part):
        return f"the name {part!r}, which is a device on some systems"
    return None


def name(path: str) -> str:
    return path.rpartition("/")[2]


def folder(path: str) -> str:
    """The directory a path lies in; empty for the root."""
    return path.rpartition("/")[0]


def parents(path: str) -> list[str]:
    """The directories above a path, the nearest last; the root (the empty path) is not one."""
    return list(_parents(path))


def _parents(path: str) -> Iterator[str]:
    at = path.find("/")
    while at >= 0:
        yield path[:at]
        at = path.find("/", at + 1)


def within(path: str, directory: str) -> bool:
    """Whether a path is the directory or lies anywhere below it."""
    return not directory or path == directory or path.startswith(f"{directory}/")


def rebased(path: str, source: str, target: str) -> str:
    """Where a path below `source` comes to lie when `source` becomes `target`."""
    return target + path[len(source) :]
