"""Conditions on a request: the version a caller knows, and whether it has the content already."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime

from starlette.datastructures import Headers

from tristore.errors import InvalidRequest, VersionMismatch
from tristore.filestore.model import Node

# `"3"` is a version; `"3.17"` is one of a certain node, as ETag headers say it.
_TAG = re.compile(r'(?:W/)?"([^"]*)"')
_VERSION = re.compile(r"([1-9][0-9]{0,8})(?:\.([1-9][0-9]{0,18}))?")


def etag(node: Node) -> str:
    """With the node's number: a path that was deleted and made anew begins at version 1 again,
    and what a client kept of the former file must not pass for the new one."""
    return f'"{node.version}.{node.id}"'


def last_modified(node: Node) -> str:
    return format_datetime(node.updated_at.astimezone(UTC).replace(microsecond=0), usegmt=True)


@dataclass(frozen=True, slots=True)
class Expected:
    """What `If-Match` asks for."""

    version: int
    node_id: int | None = None

    def check_node(self, node: Node) -> None:
        if self.node_id is not None and self.node_id != node.id:
            raise VersionMismatch(
                "the path was deleted and made anew since that ETag; read it again"
            )


def if_match(headers: Headers) -> Expected | None:
    """The one version a change may meet; `*` and lists would leave open which."""
    given = headers.get("if-match")
    if given is None:
        return None
    tag = _TAG.fullmatch(given.strip())
    found = _VERSION.fullmatch(tag[1] if tag else given.strip())
    if found is None:
        raise InvalidRequest('If-Match names one version, as in If-Match: "3"')
    return Expected(int(found[1]), int(found[2]) if found[2] else None)


def if_none_match_any(headers: Headers) -> bool:
    """`If-None-Match: *`: only where there is nothing yet."""
    given = headers.get("if-none-match")
    if given is None:
        return False
    if given.strip() != "*":
        raise InvalidRequest("If-None-Match on a change takes only *")
    return True


def unchanged(headers: Headers, node: Node) -> bool:
    """Whether the reader has this very content already (304)."""
    if (given := headers.get("if-none-match")) is not None:
        return given.strip() == "*" or _names(given, node)
    since = _date(headers.get("if-modified-since"))
    return since is not None and node.updated_at.replace(microsecond=0) <= since


def check_read(headers: Headers, node: Node) -> None:
    given = headers.get("if-match")
    if given is not None and given.strip() != "*" and not _names(given, node):
        raise VersionMismatch(f"the file has version {node.version} now; read it again")
    since = _date(headers.get("if-unmodified-since")) if given is None else None
    if since is not None and node.updated_at.replace(microsecond=0) > since:
        raise VersionMismatch("the file was changed since then; read it again")


def range_holds(headers: Headers, node: Node) -> bool:
    """`If-Range`: a part is of use only together with the parts the reader has."""
    given = headers.get("if-range")
    if given is None:
        return True
    if '"' in given:
        return given.strip() == etag(node)
    return _date(given) == node.updated_at.replace(microsecond=0)


def _names(given: str, node: Node) -> bool:
    known = {f"{node.version}.{node.id}", str(node.version)}
    return any(tag in known for tag in _TAG.findall(given))


def _date(given: str | None) -> datetime | None:
    try:
        found = parsedate_to_datetime(given) if given else None
    except ValueError:
        return None
    return found.replace(tzinfo=UTC) if found and found.tzinfo is None else found
