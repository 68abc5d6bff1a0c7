"""The one writer: records, their audit rows and their events, in the caller's transaction."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson
import psycopg

from tristore.db.pool import Connection
from tristore.db.queries import load
from tristore.errors import Busy
from tristore.events import outbox
from tristore.events.payload import Payload
from tristore.metastore.model import Proposal, Record
from tristore.metastore.telling import changed_fields, told

_sql = load("tristore.metastore", "writing.sql")

Address = tuple[str, str]
Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Version:
    """One change of one record: what was, what is, and who wants it so."""

    before: Record | None
    after: Record
    proposal: Proposal
    changed: tuple[str, ...]


async def lock(conn: Connection, namespace: str, keys: Collection[str]) -> dict[str, Record]:
    """Those of the records that are there, held until the transaction ends."""
    found = await lock_many(conn, [(namespace, key) for key in keys])
    return {key: record for (_, key), record in found.items()}


async def lock_many(conn: Connection, addresses: Collection[Address]) -> dict[Address, Record]:
    """The same over several namespaces. A record that is not there cannot be held: `write` says
    `Busy` to all but one who make it at the same time."""
    cursor = await conn.execute(_sql.lock, _columns(addresses))
    records = map(record_of, await cursor.fetchall())
    return {record.address: record for record in records}


async def write(
    conn: Connection, changes: Sequence[tuple[Record | None, Proposal]], *, source: str
) -> list[Record]:
    """Stores every change as a version of its own, with its audit row and its event, in a fixed
    number of statements; gives back the record after each.

    Each proposal stands beside the record it was made for, as `lock` gave it; of several for one
    record, the later ones build on the one before. A purge is the last of its record. What would
    change nothing is left out before: `Proposal.changes`.

    Raises `Busy` where another writer was quicker; roll back and begin again.
    """
    if not changes:
        return []
    fresh = {proposal.address for before, proposal in changes if before is None}
    versions = _versions(changes, await last_versions(conn, fresh))
    try:
        rows = await _stored(conn, _sql.store, _kept(versions))
        rows += await _stored(conn, _sql.purge, _gone(versions))
    except psycopg.errors.UniqueViolation:
        raise _busy() from None
    await outbox.add_many(conn, [_told(version) for version in versions], source=source)
    return _settled(versions, rows)


def record_of(row: Row) -> Record:
    """A row of the columns that `lock` and the readers ask for, in their order."""
    namespace, key, metadata, tags, *rest = row
    return Record(namespace, key, orjson.loads(metadata), tuple(tags), *rest)


async def last_versions(conn: Connection, addresses: Collection[Address]) -> dict[Address, int]:
    """Where the versions of records go on from that were purged, and are made again."""
    if not addresses:
        return {}
    given = {k: v for k, v in _columns(addresses).items() if k != "namespaces"}
    rows: list[Row] = await (await conn.execute(_sql.purged, given)).fetchall()
    return {(namespace, key): version for namespace, key, version in rows}


def _columns(addresses: Collection[Address]) -> dict[str, list[str]]:
    ordered = sorted(addresses)
    names = [namespace for namespace, _ in ordered]
    return {
        "namespaces": sorted(set(names)),
        "namespace": names,
        "key": [key for _, key in ordered],
    }


def _versions(
    changes: Sequence[tuple[Record | None, Proposal]], purged: dict[Address, int]
) -> list[Version]:
    now, latest, made = datetime.now(UTC), dict[Address, Record](), list[Version]()
    for given, proposal in changes:
        before = latest.get(proposal.address, given)
        number = before.version if before else purged.get(proposal.address, 0)
        after = proposal.applied(before, now, number + 1)
        latest[proposal.address] = after
        # What a purge takes away is not even named.
        changed = () if proposal.action == "purge" else changed_fields(before, after)
        made.append(Version(before, after, proposal, changed))
    return made


def _kept(versions: Sequence[Version]) -> list[dict[str, Any]]:
    """The rows of `store`; `known` is the version in the table, which the first one replaces."""
    first, last = dict[Address, Version](), dict[Address, int]()
    for place, version in enumerate(versions):
        first.setdefault(version.after.address, version)
        last[version.after.address] = place
    return [
        _row(version, first[version.after.address], last[version.after.address] == place)
        for place, version in enumerate(versions)
        if version.proposal.action != "purge"
    ]


def _row(version: Version, first: Version, last: bool) -> dict[str, Any]:
    after, proposal = version.after, version.proposal
    return {
        "namespace": after.namespace,
        "key": after.key,
        "version": after.version,
        "action": proposal.action,
        "metadata": after.metadata,
        "tags": after.tags,
        "owner": after.owner,
        "deleted": proposal.deleted,
        "changed": version.changed,
        "restored_from": proposal.restored_from,
        "actor": proposal.actor,
        "correlation_id": proposal.correlation_id,
        "known": first.before and first.before.version,
        "last": last,
        "creator": after.created_by,
    }


def _gone(versions: Sequence[Version]) -> list[dict[str, Any]]:
    return [
        {
            "namespace": version.after.namespace,
            "key": version.after.key,
            "version": version.after.version,
            "known": version.before and version.before.version,
            "changed": version.changed,
            "actor": version.proposal.actor,
            "correlation_id": version.proposal.correlation_id,
        }
        for version in versions
        if version.proposal.action == "purge"
    ]


async def _stored(conn: Connection, statement: str, rows: list[dict[str, Any]]) -> list[Row]:
    if not rows:
        return []
    cursor = await conn.execute(statement, {"versions": orjson.dumps(rows).decode()})
    return await cursor.fetchall()


def _told(version: Version) -> tuple[Payload, str | None]:
    payload = told(version.before, version.after, version.proposal, version.changed)
    return payload, version.proposal.correlation_id


def _settled(versions: Sequence[Version], rows: Sequence[Row]) -> list[Record]:
    """The records with the times the database gave them."""
    times = {(row[0], row[1]): row[2:] for row in rows}
    if len(times) != len({version.after.address for version in versions}):
        raise _busy()
    return [_timed(version, times[version.after.address]) for version in versions]


def _timed(version: Version, times: Row) -> Record:
    created_at, updated_at, deleted_at = times
    deleted = (deleted_at or updated_at) if version.proposal.deleted else None
    return version.after.at(created_at, updated_at, deleted)


def _busy() -> Busy:
    return Busy("another writer changed the record at the same moment; try again")
