"""Which schema an event must fit, and whether it does.

The engine is told to open no socket and no file for a `$ref`, and uses a regular-expression
engine whose time is linear in the value.
"""

from collections.abc import Iterable

from jsonschema_rs import Draft202012Validator, RegexOptions, ValidationError

from tristore.errors import InvalidEvent, Violation
from tristore.events.catalogue import CatalogueEntry, entries
from tristore.events.envelope import Event


class Registry:
    def __init__(self, schemas: Iterable[CatalogueEntry], *, require_schema: bool = False) -> None:
        self._require_schema = require_schema
        self._validators: dict[str, dict[int, Draft202012Validator]] = {}
        for entry in schemas:
            self._validators.setdefault(entry.type, {})[entry.version] = compile_schema(
                entry.schema
            )

    @classmethod
    def of_catalogue(cls, *, require_schema: bool = False) -> "Registry":
        return cls(entries(), require_schema=require_schema)

    def check(self, event: Event) -> Event:
        """The event stamped with the version it was checked against."""
        versions = self._validators.get(event.type)
        if versions is None:
            if self._require_schema:
                raise _refusal("no_schema", "/type", f"no schema is registered for {event.type}")
            return event
        version = event.schema_version or max(versions)
        if version not in versions:
            known = ", ".join(map(str, sorted(versions)))
            message = f"{event.type} has no version {version}; known: {known}"
            raise _refusal("no_schema", "/schemaVersion", message)
        if not versions[version].is_valid(event.payload):
            found = versions[version].iter_errors(event.payload)
            raise InvalidEvent("schema_invalid", [_violation(error) for error in found])
        if event.schema_version == version:
            return event
        return event.model_copy(update={"schema_version": version})


def compile_schema(schema: dict[str, object]) -> Draft202012Validator:
    return Draft202012Validator(
        schema, validate_formats=True, offline=True, pattern_options=RegexOptions()
    )


def _refusal(reason: str, path: str, message: str) -> InvalidEvent:
    return InvalidEvent(reason, [Violation(path, message)])


def _violation(error: ValidationError) -> Violation:
    path = "".join(f"/{part}" for part in ["payload", *error.instance_path])
    return Violation(path, error.message[:500])
