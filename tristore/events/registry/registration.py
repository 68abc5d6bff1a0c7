"""A registration: a new version of an event type's schema, if nothing forbids it."""

import asyncio
from dataclasses import dataclass
from typing import Any

from tristore.db.pool import Connection
from tristore.errors import IncompatibleSchema, NotFound, SchemaConflict
from tristore.events import catalogue
from tristore.events.registry import schema_safety, schema_store
from tristore.events.registry.compatibility import Mode, Verdict, compare
from tristore.events.registry.schema_version import SchemaVersion, Status


@dataclass(frozen=True, slots=True)
class Registration:
    type: str
    schema: dict[str, Any]
    version: int | None
    status: Status
    compatibility: Mode


@dataclass(frozen=True, slots=True)
class Comparison:
    """`against` is the version that was compared with; None where there is none yet."""

    verdict: Verdict
    against: int | None

    def to_json(self, mode: Mode) -> dict[str, Any]:
        return {**self.verdict.to_json(mode), "against": self.against}


async def register(conn: Connection, wanted: Registration, by: str) -> tuple[SchemaVersion, bool]:
    """The version, and whether it is new. Call inside a transaction."""
    schema_safety.check(wanted.schema)
    if catalogue.latest(wanted.type):
        raise SchemaConflict(
            f"{wanted.type} ships with the platform; register a type of your own name"
        )
    await schema_store.lock(conn)
    known = await schema_store.versions(conn, wanted.type)
    if again := _again(known, wanted, await schema_store.holders(conn, wanted.type, wanted.schema)):
        return again, False
    version = _next_version(known, wanted)
    if wanted.compatibility != "none":
        _refuse_breaks(await _compared(known, wanted.schema), wanted)
    added = await schema_store.add(conn, wanted.type, version, wanted.status, wanted.schema, by)
    return added, True


async def check(conn: Connection, type: str, schema: dict[str, Any]) -> Comparison:
    """What registering the schema would be told, without registering it."""
    schema_safety.check(schema)
    return await _compared(await known_versions(conn, type), schema)


async def known_versions(conn: Connection, type: str) -> list[SchemaVersion]:
    """Of the catalogue and of registrations, newest first."""
    shipped = [
        SchemaVersion(entry.type, entry.version, "active", entry.schema)
        for entry in reversed(catalogue.entries())
        if entry.type == type
    ]
    return shipped or await schema_store.versions(conn, type)


async def find(conn: Connection, type: str, version: int | None = None) -> SchemaVersion:
    """The asked version, or the one new events are checked with."""
    known = await known_versions(conn, type)
    if not known:
        raise NotFound(f"no schema is registered for {type}")
    if version is None:
        return _current(known) or known[0]
    for found in known:
        if found.version == version:
            return found
    listed = ", ".join(str(one.version) for one in known[:20])
    raise NotFound(f"{type} has no version {version}; known: {listed}")


def _current(known: list[SchemaVersion]) -> SchemaVersion | None:
    """The newest active version, else the newest that is at least not switched off."""
    usable = [one for one in known if one.status != "disabled"]
    active = [one for one in usable if one.status == "active"]
    return next(iter(active or usable), None)


def _again(
    known: list[SchemaVersion], wanted: Registration, holders: set[int]
) -> SchemaVersion | None:
    """The version that holds this very schema already: the asked one, or the current one."""
    asked = [one for one in known if one.version == wanted.version]
    current = _current(known)
    candidates = asked if wanted.version is not None else [current] if current else []
    for one in candidates:
        if one.version in holders:
            return one
    if asked:
        raise SchemaConflict(
            f"version {wanted.version} of {wanted.type} has another schema; "
            f"leave the version out to get {known[0].version + 1}"
        )
    return None


def _next_version(known: list[SchemaVersion], wanted: Registration) -> int:
    newest = known[0].version if known else 0
    if wanted.version is None:
        return newest + 1
    if wanted.version <= newest:
        raise SchemaConflict(
            f"version {wanted.version} of {wanted.type} is older than {newest}; "
            f"use {newest + 1} or leave the version out"
        )
    return wanted.version


async def _compared(known: list[SchemaVersion], schema: dict[str, Any]) -> Comparison:
    current = _current(known)
    if current is None:
        return Comparison(Verdict([]), None)
    # Off the event loop: intricate schemas take their time.
    verdict = await asyncio.to_thread(compare, current.schema, schema)
    return Comparison(verdict, current.version)


def _refuse_breaks(found: Comparison, wanted: Registration) -> None:
    if found.verdict.allows(wanted.compatibility):
        return
    named = found.verdict.against(wanted.compatibility)
    listed = "; ".join(f"{c.path or '/'} {c.change} (breaks {c.breaks})" for c in named[:5])
    raise IncompatibleSchema(
        f"not compatible with version {found.against} of {wanted.type}: {listed}. Change the "
        'schema, publish under a new type, or register with "compatibility": "none"',
        found.to_json(wanted.compatibility),
    )
