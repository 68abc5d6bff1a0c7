"""The rules of a namespace, held to on every way in."""

from collections.abc import Collection
from typing import Any

from tristore.config import MetastoreSettings
from tristore.db.pool import Connection
from tristore.errors import InvalidRecord, Violation
from tristore.events.registry.schema_engine import compile_schema
from tristore.events.registry.schema_version import SchemaVersion
from tristore.metastore import namespaces
from tristore.metastore.content import MAX_TAGS, MAX_TAGS_BYTES, size_violations
from tristore.metastore.model import RESERVED, Metadata, Namespace, Proposal

_REMEMBER_MOST = 1_000


class Rules:
    """One version of a namespace's rules, ready to check with; a namespace that is not there yet
    has none, and version 0."""

    def __init__(self, found: Namespace | None, *, reserves: bool, max_bytes: int) -> None:
        self.version = found.version if found else 0
        self.reserves = reserves
        self._max_bytes = max_bytes
        self._owner = bool(found and found.require_owner)
        allowed = found.allowed_tags if found else None
        self._tags = None if allowed is None else frozenset(allowed)
        self._pattern = found.key_pattern if found else None
        self._key = key_matcher(self._pattern) if self._pattern is not None else None
        schema = found.schema if found else None
        self._schema = None if schema is None else SchemaVersion("", 1, "active", schema)

    def check(self, proposal: Proposal) -> None:
        if found := self.violations(proposal):
            raise InvalidRecord(found)

    def violations(self, proposal: Proposal) -> list[Violation]:
        """Everything that is wrong with a record after the change. A record may always be
        deleted: it may be there because the rules are younger than it is."""
        if proposal.deleted:
            return []
        found = size_violations(proposal.metadata, self._max_bytes)
        if len(proposal.tags) > MAX_TAGS:
            found.append(Violation("/tags", f"would be more than {MAX_TAGS} tags"))
        elif len("".join(proposal.tags).encode()) > MAX_TAGS_BYTES:
            found.append(Violation("/tags", f"would be more than {MAX_TAGS_BYTES} bytes together"))
        return found or self._of_namespace(proposal)

    def _of_namespace(self, proposal: Proposal) -> list[Violation]:
        found = []
        if self._key is not None and not self._key.is_valid(proposal.key):
            message = f"keys of this namespace match {self._pattern}"
            found.append(Violation("/key", message))
        if self._owner and proposal.owner is None:
            found.append(Violation("/owner", "records of this namespace have an owner; give one"))
        if self._tags is not None and (others := [t for t in proposal.tags if t not in self._tags]):
            named = ", ".join(others[:10])
            found.append(Violation("/tags", f"not among the namespace's allowed tags: {named}"))
        return found + self._of_schema(self.users_part(proposal.metadata))

    def _of_schema(self, metadata: Metadata) -> list[Violation]:
        if self._schema is None or self._schema.validator.is_valid(metadata):
            return []
        return [
            Violation("/metadata" + found.path.removeprefix("/payload"), found.message)
            for found in self._schema.violations(metadata)
        ]

    def users_part(self, metadata: Metadata) -> Metadata:
        """Metadata without what the filestore sync keeps there."""
        if not self.reserves or RESERVED not in metadata:
            return metadata
        return {name: value for name, value in metadata.items() if name != RESERVED}


def key_matcher(pattern: str) -> Any:
    """The whole key must match; by the engine of schemas, which takes linear time."""
    return compile_schema({"type": "string", "pattern": f"^(?:{pattern})$"})


class Rulebook:
    """The rules this process has compiled, by namespace; each is used only while Postgres says
    that it is the newest."""

    def __init__(self, settings: MetastoreSettings) -> None:
        self._settings = settings
        self._known: dict[str, Rules] = {}
        self._none = {
            reserves: self.compiled(None, reserves=reserves) for reserves in (False, True)
        }

    async def hold(self, conn: Connection, names: Collection[str]) -> dict[str, Rules]:
        """The rules as they are until the caller's transaction ends, also of namespaces that are
        not there yet."""
        versions = await namespaces.hold(conn, names)
        stale = [n for n, version in versions.items() if not self._fresh(n, version)]
        for found in await namespaces.find(conn, stale) if stale else []:
            self._remember(found)
        return {
            name: self._known[name] if name in versions else self._none[self.reserves(name)]
            for name in names
        }

    def known(self, name: str) -> Rules | None:
        """What was newest when last asked; whoever uses it must have Postgres compare versions."""
        return self._known.get(name)

    def reserves(self, name: str) -> bool:
        return name == self._settings.filestore_namespace

    def compiled(self, found: Namespace | None, *, reserves: bool | None = None) -> Rules:
        reserves = self.reserves(found.name) if found else bool(reserves)
        return Rules(found, reserves=reserves, max_bytes=self._settings.max_metadata_bytes)

    def _fresh(self, name: str, version: int) -> bool:
        return name in self._known and self._known[name].version == version

    def _remember(self, found: Namespace) -> None:
        if len(self._known) >= _REMEMBER_MOST and found.name not in self._known:
            self._known.pop(next(iter(self._known)))
        self._known[found.name] = self.compiled(found)
