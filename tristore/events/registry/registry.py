"""Which schema an event must fit, and whether it does: the catalogue's and those registered."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from jsonschema_rs import Draft202012Validator

from tristore.errors import InvalidEvent, Violation
from tristore.events.catalogue import CatalogueEntry, entries
from tristore.events.envelope import Event
from tristore.events.registry.schema_version import SchemaVersion


@dataclass(slots=True)
class _Type:
    """The versions of a type; `newest` is the one for events that name none."""

    versions: dict[int, SchemaVersion] = field(default_factory=dict)
    newest: SchemaVersion | None = None

    def put(self, version: SchemaVersion) -> None:
        self.versions[version.version] = version
        usable = [v for v in self.versions.values() if v.status == "active"]
        self.newest = max(usable, key=lambda v: v.version, default=None)

    @property
    def in_use(self) -> list[int]:
        return sorted(v.version for v in self.versions.values() if v.status != "disabled")


class Registry:
    """`revision` numbers the last change of a registered schema that is known here."""

    def __init__(self, schemas: Iterable[CatalogueEntry], *, require_schema: bool = False) -> None:
        self._require_schema = require_schema
        self._catalogue = [SchemaVersion(e.type, e.version, "active", e.schema) for e in schemas]
        self._shipped = {version.type for version in self._catalogue}
        self.forget()

    @classmethod
    def of_catalogue(cls, *, require_schema: bool = False) -> "Registry":
        return cls(entries(), require_schema=require_schema)

    def forget(self) -> None:
        """Back to the catalogue alone."""
        self.revision = 0
        self._types: dict[str, _Type] = {}
        for version in self._catalogue:
            self._types.setdefault(version.type, _Type()).put(version)

    def learn(self, changed: Iterable[SchemaVersion], revision: int) -> None:
        """Takes over registered schemas. A type of the catalogue belongs to the platform."""
        for version in changed:
            if version.type not in self._shipped:
                self._types.setdefault(version.type, _Type()).put(version)
            revision = max(revision, version.revision)
        self.revision = revision

    def check(self, event: Event) -> Event:
        """The event stamped with the version it was checked against."""
        schema = self._schema_for(event)
        if schema is None:
            return event
        if not _usable(schema).is_valid(event.payload):
            raise InvalidEvent("schema_invalid", schema.violations(event.payload))
        if event.schema_version == schema.version:
            return event
        return event.model_copy(update={"schema_version": schema.version})

    def _schema_for(self, event: Event) -> SchemaVersion | None:
        known = self._types.get(event.type)
        if known is not None and event.schema_version is None and known.newest is not None:
            return known.newest
        if known is None or not known.in_use:
            if self._require_schema:
                raise _refusal("/type", f"no schema is registered for {event.type}")
            return None
        return _named(known, event)


def _named(known: _Type, event: Event) -> SchemaVersion:
    usable = ", ".join(map(str, known.in_use))
    if event.schema_version is None:
        message = f"no version of {event.type} is active; name one of these: {usable}"
        raise _refusal("/schemaVersion", message)
    found = known.versions.get(event.schema_version)
    if found is None or found.status == "disabled":
        message = f"{event.type} has no version {event.schema_version} in use; known: {usable}"
        raise _refusal("/schemaVersion", message)
    return found


def _usable(schema: SchemaVersion) -> Draft202012Validator:
    try:
        return schema.validator
    except ValueError as error:
        # Written past the registration's checks; the event can be replayed once it is repaired.
        message = f"version {schema.version} of {schema.type} cannot be used: {error}"
        raise _refusal("/schemaVersion", message[:500]) from None


def _refusal(path: str, message: str) -> InvalidEvent:
    return InvalidEvent("no_schema", [Violation(path, message)])
