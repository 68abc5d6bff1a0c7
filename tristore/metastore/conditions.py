"""Conditions of a write: `If-Match` and `If-None-Match` over versions."""

import re
from dataclasses import dataclass

from tristore.errors import InvalidRequest, VersionMismatch
from tristore.metastore.model import Record

_TAG = re.compile(r'(?:W/)?"(\d{1,9})"|(\d{1,9})', re.ASCII)


@dataclass(frozen=True, slots=True)
class Condition:
    """`versions`: one of them must stand; `there`: a live record must; `absent`: none may."""

    versions: frozenset[int] | None = None
    there: bool = False
    absent: bool = False

    @classmethod
    def of(cls, if_match: str | None, if_none_match: str | None = None) -> "Condition":
        if if_none_match not in (None, "*"):
            raise InvalidRequest("If-None-Match of a write can only be *: make it if it is new")
        absent = if_none_match == "*"
        if if_match is None or if_match.strip() == "*":
            return cls(there=if_match is not None, absent=absent)
        return cls(frozenset(map(_version, if_match.split(","))), absent=absent)

    def check(self, before: Record | None) -> None:
        live = before is not None and before.deleted_at is None
        if self.absent and live:
            raise VersionMismatch(
                "the record is there already; leave If-None-Match out to replace it"
            )
        if self.there and not live:
            raise VersionMismatch("there is no such record; leave If-Match out to make it")
        if self.versions is not None:
            check_version(self.versions, before.version if before else None)


def check_version(wanted: frozenset[int], version: int | None) -> None:
    if version is None:
        raise VersionMismatch("there is nothing of that version; leave If-Match out to make it")
    if version not in wanted:
        raise VersionMismatch(
            f"the version is {version} by now; read it again and repeat the change on it"
        )


def _version(text: str) -> int:
    found = _TAG.fullmatch(text.strip())
    if found is None:
        raise InvalidRequest('If-Match is * or a version in quotes, such as "3"')
    # A weak tag never matches here (RFC 9110), and no record has the version 0.
    return 0 if text.strip().startswith("W/") else int(found[1] or found[2])
