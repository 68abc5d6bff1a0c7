"""Which schemas are refused at registration: those that reach outside, or that a value could
use to hold a worker up."""

from collections.abc import Callable, Iterator
from typing import Any

import orjson
from jsonschema_rs import ValidationError

from tristore.errors import InvalidSchema, Violation
from tristore.events.registry import pattern, schema_cost
from tristore.events.registry.schema_document import (
    DRAFT,
    Node,
    mapped,
    pointer,
    resolve,
    subschemas,
)
from tristore.events.registry.schema_engine import compile_schema

MAX_BYTES = 64 * 1024
MAX_SUBSCHEMAS = 5_000
MAX_PATTERN_STATES = 1_000
MAX_UNIQUE_ITEMS = 1_000
# Units of `schema_cost` at a place that is there once, and at one of many.
MAX_WORK_ONCE = 10_000
MAX_WORK_EACH = 1_500

_REFUSED = {
    "$id": "the type and version name a schema here; remove $id",
    "$anchor": "use a JSON pointer such as #/$defs/name instead of an anchor",
    "$dynamicAnchor": "dynamic references are not supported; use $ref",
    "$dynamicRef": "dynamic references are not supported; use $ref",
    "$recursiveAnchor": "recursive references are not supported; use $ref",
    "$recursiveRef": "recursive references are not supported; use $ref",
    "$vocabulary": "vocabularies are not supported; remove $vocabulary",
}

Found = Iterator[Violation]


def check(schema: object) -> dict[str, Any]:
    """The schema, if it may be used for events; else `InvalidSchema` with every reason."""
    if not isinstance(schema, dict):
        raise InvalidSchema([Violation("", "a schema is a JSON object")])
    for stage in (_whole, _parts, _cost, _compiles):
        if found := list(stage(schema)):
            raise InvalidSchema(found[:100])
    return schema


def _whole(schema: dict[str, Any]) -> Found:
    size = len(orjson.dumps(schema))
    if size > MAX_BYTES:
        yield Violation("", f"has {size} bytes; at most {MAX_BYTES} are allowed")
    if schema.get("$schema", DRAFT) not in (DRAFT, DRAFT + "#"):
        yield Violation("/$schema", f"only {DRAFT} is known; leave $schema out or use that")
    kinds = schema.get("type", "object")
    if "object" not in (kinds if isinstance(kinds, list) else [kinds]):
        yield Violation("/type", "payloads are objects, so nothing would ever be valid")


def _parts(schema: dict[str, Any]) -> Found:
    nodes = list(_walk(schema))
    if len(nodes) > MAX_SUBSCHEMAS:
        yield Violation("", f"has more than {MAX_SUBSCHEMAS} subschemas")
        return
    known = {id(node) for _, node in nodes}
    for at, node in nodes:
        if isinstance(node, dict):
            for rule in _RULES:
                yield from rule(at, node)
            yield from _reference(at, node, schema, known)


def _walk(schema: Node) -> Iterator[tuple[str, Node]]:
    waiting: list[tuple[str, Node]] = [("", schema)]
    while waiting:
        at, node = waiting.pop()
        yield at, node
        waiting += [(at + below, sub) for below, sub in subschemas(node)]


def _keywords(at: str, node: dict[str, Any]) -> Found:
    for keyword in _REFUSED.keys() & node.keys():
        yield Violation(f"{at}/{keyword}", _REFUSED[keyword])
    if at and "$schema" in node:
        yield Violation(f"{at}/$schema", "$schema stands only at the top")


def _reference(at: str, node: dict[str, Any], schema: Node, known: set[int]) -> Found:
    if "$ref" not in node:
        return
    target = resolve(schema, node["$ref"])
    # Booleans are shared objects, so their ids say nothing; they are harmless anywhere.
    if target is None or (isinstance(target, dict) and id(target) not in known):
        message = "must point at a schema inside this document, such as #/$defs/name"
        yield Violation(f"{at}/$ref", f"{message}; nothing is ever fetched")


def _patterns(at: str, node: dict[str, Any]) -> Found:
    found = [(f"{at}/pattern", node.get("pattern"))]
    found += [(at + pointer("patternProperties", p), p) for p in mapped(node, "patternProperties")]
    for place, text in found:
        if not isinstance(text, str):
            continue
        try:
            if pattern.states(text) > MAX_PATTERN_STATES:
                yield Violation(place, "repeats too much; use maxLength, or smaller counts")
        except pattern.PatternUnread as error:
            yield Violation(place, f"the pattern {error}")


def _formats(at: str, node: dict[str, Any]) -> Found:
    if node.get("format") == "regex":
        message = "checking this format compiles each value, which a value can make very slow"
        yield Violation(f"{at}/format", f"{message}; use a pattern")


def _unique_items(at: str, node: dict[str, Any]) -> Found:
    most = node.get("maxItems")
    bounded = isinstance(most, int) and most <= MAX_UNIQUE_ITEMS
    if node.get("uniqueItems") is True and not bounded:
        message = f"needs maxItems of at most {MAX_UNIQUE_ITEMS} beside it"
        yield Violation(f"{at}/uniqueItems", message)


_RULES: tuple[Callable[[str, dict[str, Any]], Found], ...] = (
    _keywords,
    _patterns,
    _formats,
    _unique_items,
)


def _cost(schema: dict[str, Any]) -> Found:
    try:
        weight = schema_cost.heaviest(schema, schema_cost.work)
    except schema_cost.EndlessReference:
        yield Violation("", "a $ref leads back to itself, or through too many others")
        return
    if weight.any > MAX_WORK_ONCE or weight.many > MAX_WORK_EACH:
        message = "a value could make this schema work too long: too much meets at one place"
        advice = "use fewer alternatives, patterns and numbers there, and name the type of items"
        yield Violation("", f"{message}; {advice}")


def _compiles(schema: dict[str, Any]) -> Found:
    try:
        compile_schema(schema)
    except ValidationError as error:
        yield Violation(pointer(*error.instance_path), error.message[:500])
    except ValueError as error:
        yield Violation("", str(error)[:500])
