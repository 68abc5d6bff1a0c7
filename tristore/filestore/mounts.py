"""Mounts: the folders and buckets that are tracked, each with the root of its tree."""

import re
from pathlib import Path
from typing import Any

import orjson
from psycopg.rows import class_row

from tristore.db.pool import Connection
from tristore.db.queries import load
from tristore.errors import InvalidQuery, InvalidRequest, KeyConflict, MountRefused, PathConflict
from tristore.filestore import endpoints, paths
from tristore.filestore.model import Caller, Mount

_sql = load("tristore.filestore", "mounts.sql")

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_CONFIG = {
    "local": ("root",),
    "s3": ("bucket", "prefix", "endpoint", "region", "credentials"),
}
_COMMON = ("name", "kind", "access", "auditSeconds")


def check_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise InvalidQuery(
            "the name of a mount has up to 63 lower-case letters, digits, dashes and underscores, "
            "and begins with a letter or digit"
        )
    return name


def described(spec: dict[str, Any]) -> dict[str, Any]:
    """The columns of a mount as its maker described it."""
    kind = spec.get("kind")
    if kind not in _CONFIG:
        raise InvalidRequest("a mount is of the kind `local` or `s3`")
    needed = _CONFIG[kind]
    if unknown := sorted(spec.keys() - {*_COMMON, *needed}):
        raise InvalidRequest(f"a {kind} mount has no field {unknown[0]!r}")
    if not isinstance(spec.get(needed[0]), str):
        raise InvalidRequest(f"a {kind} mount names its `{needed[0]}`")
    access = spec.get("access", "readWrite")
    if access not in ("readWrite", "observe"):
        raise InvalidRequest("the access of a mount is `readWrite` or `observe`")
    return {
        "name": check_name(str(spec.get("name", ""))),
        "kind": kind,
        "access": access,
        "config": {key: spec[key] for key in needed if spec.get(key) is not None},
        "audit_seconds": spec.get("auditSeconds"),
    }


async def create(
    conn: Connection, columns: dict[str, Any], caller: Caller, *, empty: bool = False
) -> Mount:
    """In a transaction of its own: the mount and the root of its tree. An empty one needs no first
    audit; what lies in a filled one is no drift but waits for an import."""
    await conn.execute(_sql.one_at_a_time)
    await check_free(conn, columns, caller)
    given = columns | {"config": orjson.dumps(columns["config"]).decode(), "empty": empty}
    given |= {"created_by": caller.principal or caller.source, **_key(caller)}
    await conn.execute(_sql.create, given)
    found = await by_name(conn, columns["name"])
    assert found is not None
    return found


async def check_free(conn: Connection, columns: dict[str, Any], caller: Caller) -> None:
    """Whether another mount has the key, the name, or files that this one would have."""
    keyed = await (await conn.execute(_sql.by_key, _key(caller))).fetchone()
    if keyed is not None and keyed[0] != columns["name"]:
        raise KeyConflict("this Idempotency-Key was used for another mount; choose a new one")
    for mount in await every(conn):
        if mount.name == columns["name"]:
            if not _repeated(mount, columns, caller):
                raise PathConflict(f"there is a mount called {mount.name} already; choose a name")
        elif _overlap(columns, mount):
            raise MountRefused("another mount holds these files already, or some of them")


def _key(caller: Caller) -> dict[str, Any]:
    token = None if caller.token_id is None else str(caller.token_id)
    return {"token_id": token, "key": caller.idempotency_key}


def _overlap(columns: dict[str, Any], other: Mount) -> bool:
    """Two mounts of one file would each take the other's changes for a stranger's."""
    if columns["kind"] != other.kind:
        return False
    config, held = columns["config"], other.config
    if other.kind == "s3":
        return _Keys(config).within(_Keys(held)) or _Keys(held).within(_Keys(config))
    ours, theirs = Path(config["root"]).resolve(), Path(held["root"]).resolve()
    return ours.is_relative_to(theirs) or theirs.is_relative_to(ours)


class _Keys:
    """Where the objects of a mount lie."""

    def __init__(self, config: dict[str, Any]) -> None:
        # The region is not part of it: a server has no two buckets of one name.
        endpoint = config.get("endpoint")
        self._bucket = (endpoint and endpoints.parse(endpoint), config["bucket"])
        self._prefix = str(config.get("prefix") or "").strip("/")

    def within(self, other: "_Keys") -> bool:
        return self._bucket == other._bucket and paths.within(self._prefix, other._prefix)


def _repeated(found: Mount, columns: dict[str, Any], caller: Caller) -> bool:
    """Whether a request with an Idempotency-Key asks again for what it was given."""
    same = (found.kind, found.access, found.config, found.audit_seconds) == (
        columns["kind"],
        columns["access"],
        columns["config"],
        columns["audit_seconds"],
    )
    return same and caller.idempotency_key is not None


async def by_name(conn: Connection, name: str) -> Mount | None:
    cursor = conn.cursor(row_factory=class_row(Mount))
    return await (await cursor.execute(_sql.by_name, {"name": name})).fetchone()


async def by_id(conn: Connection, mount_id: int) -> Mount | None:
    cursor = conn.cursor(row_factory=class_row(Mount))
    return await (await cursor.execute(_sql.by_id, {"id": mount_id})).fetchone()


async def every(conn: Connection) -> list[Mount]:
    """In the order of names."""
    cursor = conn.cursor(row_factory=class_row(Mount))
    return await (await cursor.execute(_sql.every)).fetchall()
