"""One version of the schema of one event type, from the catalogue or registered at run time."""

import itertools
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from jsonschema_rs import Draft202012Validator, ValidationError

from tristore.errors import Violation
from tristore.events.envelope import time_text
from tristore.events.registry import schema_cost
from tristore.events.registry.schema_document import pointer
from tristore.events.registry.schema_engine import compile_schema

Status = Literal["active", "deprecated", "disabled"]
MAX_VIOLATIONS = 100
# The engine lists all errors at once, about a kilobyte each; a value could ask for millions.
_MOST_LISTED = 50_000


@dataclass(slots=True)
class SchemaVersion:
    """`active`: for new events; `deprecated`: for events that name it; `disabled`: for none."""

    type: str
    version: int
    status: Status
    schema: dict[str, Any]
    created_at: datetime | None = None
    created_by: str = "catalogue"
    revision: int = 0
    _validator: Draft202012Validator | None = field(default=None, repr=False, compare=False)

    @property
    def registered(self) -> bool:
        return self.created_at is not None

    @property
    def validator(self) -> Draft202012Validator:
        # Compiled when first needed: a process meets few of the types there are.
        if self._validator is None:
            self._validator = compile_schema(self.schema)
        return self._validator

    def violations(self, payload: dict[str, Any]) -> list[Violation]:
        """What is wrong with a payload that is not valid; all of it, as far as that is bounded."""
        if self._most_errors(payload) > _MOST_LISTED:
            more = "the payload is large, so only the first error is listed"
            return [*_first(self.validator, payload), Violation("/payload", more)]
        found = list(itertools.islice(self.validator.iter_errors(payload), MAX_VIOLATIONS + 1))
        listed = [_violation(error) for error in found[:MAX_VIOLATIONS]]
        if len(found) > MAX_VIOLATIONS:
            listed.append(Violation("/payload", f"more than {MAX_VIOLATIONS} errors"))
        return listed

    def to_json(self) -> dict[str, Any]:
        return {
            "type": self.type,
            "version": self.version,
            "status": self.status,
            "origin": "registered" if self.registered else "catalogue",
            "schema": self.schema,
            "createdAt": time_text(self.created_at) if self.created_at else None,
            "createdBy": self.created_by if self.registered else None,
        }

    def _most_errors(self, payload: dict[str, Any]) -> int:
        """An upper bound."""
        weight = schema_cost.heaviest(self.schema, schema_cost.errors)
        count = places(payload, _MOST_LISTED)
        return weight.any * min(count, weight.named) + weight.many * count


def places(value: object, most: int) -> int:
    """How many values there are in a value, itself included; stops counting at `most`."""
    found, waiting = 0, [value]
    while waiting and found < most:
        at = waiting.pop()
        found += 1
        if isinstance(at, dict):
            waiting += at.values()
        elif isinstance(at, list):
            waiting += at
    return found


def _first(validator: Draft202012Validator, payload: dict[str, Any]) -> list[Violation]:
    try:
        validator.validate(payload)
    except ValidationError as error:
        return [_violation(error)]
    return []


def _violation(error: ValidationError) -> Violation:
    return Violation(pointer("payload", *error.instance_path), error.message[:500])
