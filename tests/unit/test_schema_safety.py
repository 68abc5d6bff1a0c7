"""Schemas that reach outside or could hold a worker up are refused; what passes stays bounded."""

import json
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from tristore.errors import InvalidEvent, InvalidSchema
from tristore.events import catalogue
from tristore.events.catalogue import CatalogueEntry
from tristore.events.envelope import MAX_PAYLOAD_BYTES, Event
from tristore.events.registry import pattern, schema_safety
from tristore.events.registry.registry import Registry
from tristore.events.registry.schema_engine import compile_schema
from tristore.events.registry.schema_version import MAX_VIOLATIONS

Schema = dict[str, Any]


def prop(schema: Schema) -> Schema:
    return {"type": "object", "properties": {"a": schema}}


def fresh(schema: Schema) -> Schema:
    """As it arrives: no part of it is one Python object in two places."""
    parsed: Schema = json.loads(json.dumps(schema))
    return parsed


def doubling(levels: int) -> Schema:
    steps = {f"s{n}": {"allOf": [{"$ref": f"#/$defs/s{n + 1}"}] * 2} for n in range(levels)}
    return {"$defs": {**steps, f"s{levels}": {"type": "object"}}, "$ref": "#/$defs/s0"}


def nested(levels: int) -> Schema:
    schema: Schema = {"type": "string"}
    for _ in range(levels):
        schema = {"properties": {"a": schema}}
    return schema


TWICE = {"items": {"allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]}}
ROUND = {"a": {"$ref": "#/$defs/b"}, "b": {"anyOf": [{"$ref": "#/$defs/a"}]}}
REFUSED: list[tuple[str, Any, str, str]] = [
    ("not an object", [], "", "JSON object"),
    (
        "remote ref",
        prop({"$ref": "http://169.254.169.254/latest"}),
        "/properties/a/$ref",
        "fetched",
    ),
    ("file ref", prop({"$ref": "file:///etc/passwd"}), "/properties/a/$ref", "fetched"),
    ("relative ref", prop({"$ref": "other.json"}), "/properties/a/$ref", "inside"),
    ("ref into data", {"x": {"pattern": "a{9}"}, "$ref": "#/x"}, "/$ref", "inside"),
    ("ref to nothing", prop({"$ref": "#/$defs/no"}), "/properties/a/$ref", "inside"),
    ("remote id", {"$id": "https://example.com/s", "type": "object"}, "/$id", "remove"),
    ("id inside", prop({"$id": "http://example.com/s"}), "/properties/a/$id", "remove"),
    ("remote draft", {"$schema": "http://127.0.0.1:9/s"}, "/$schema", "2020-12"),
    ("older draft", {"$schema": "http://json-schema.org/draft-07/schema#"}, "/$schema", "2020-12"),
    ("dynamic ref", prop({"$dynamicRef": "#x"}), "/properties/a/$dynamicRef", "$ref"),
    ("ref to itself", {"$ref": "#"}, "", "back to itself"),
    ("ref in a circle", {"$defs": ROUND, "$ref": "#/$defs/a"}, "", "back to itself"),
    ("allOf doubling", doubling(16), "", "too long"),
    ("doubling by depth", {"$defs": {"a": TWICE}, **prop({"$ref": "#/$defs/a"})}, "", "too long"),
    ("lookahead", prop({"pattern": "(?=a)b"}), "/properties/a/pattern", "linear-time"),
    ("back reference", prop({"pattern": "(a)\\1"}), "/properties/a/pattern", "linear-time"),
    ("huge count", prop({"pattern": "a{100000}"}), "/properties/a/pattern", "too much"),
    ("nested counts", prop({"pattern": "((a{99}){99}){9}"}), "/properties/a/pattern", "too much"),
    ("long pattern", prop({"pattern": "a" * 1001}), "/properties/a/pattern", "longer"),
    ("no pattern", prop({"pattern": "["}), "/properties/a/pattern", "regex"),
    ("name pattern", {"patternProperties": {"a{9999}": {}}}, "/patternProperties/a{9999}", "much"),
    ("many patterns", prop({"allOf": [{"pattern": "a{900}"}] * 3}), "", "too long"),
    ("regex format", prop({"format": "regex"}), "/properties/a/format", "pattern"),
    ("endless unique", prop({"uniqueItems": True}), "/properties/a/uniqueItems", "maxItems"),
    (
        "large unique",
        prop({"uniqueItems": True, "maxItems": 20_000}),
        "/properties/a/uniqueItems",
        "maxItems",
    ),
    (
        "lists of unique anything",
        prop({"items": {"uniqueItems": True, "maxItems": 9}}),
        "",
        "type of",
    ),
    ("fractions in a list", prop({"items": {"enum": [n + 0.5 for n in range(9)]}}), "", "too long"),
    ("numbers in a list", prop({"items": {"enum": list(range(500))}}), "", "too long"),
    (
        "wide anyOf",
        prop({"items": {"anyOf": [{"minimum": n} for n in range(800)]}}),
        "",
        "too long",
    ),
    ("never valid", {"type": "string"}, "/type", "objects"),
    ("no type", prop({"type": "strng"}), "/properties/a/type", "not valid"),
    ("no number", prop({"minimum": "1"}), "/properties/a/minimum", "number"),
    ("too large", prop({"description": "x" * 70_000}), "", "bytes"),
    ("too many parts", {"allOf": [{}] * 6_000}, "", "subschemas"),
]


@pytest.mark.parametrize(("name", "schema", "path", "reason"), REFUSED, ids=[r[0] for r in REFUSED])
def test_a_dangerous_schema_is_refused_with_place_and_reason(
    name: str, schema: Any, path: str, reason: str
) -> None:
    started = time.process_time()
    with pytest.raises(InvalidSchema) as refused:
        schema_safety.check(fresh(schema))
    assert any(v.path == path and reason in v.message for v in refused.value.violations), (
        refused.value.violations
    )
    # Refusing must not be the attack.
    assert time.process_time() - started < 10


def linked() -> Schema:
    node = {"type": "object", "properties": {"value": {"type": "integer"}, "next": {"$ref": "#"}}}
    return node


ACCEPTED: list[Schema] = [
    {},
    {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object"},
    linked(),
    nested(20),
    doubling(8),
    prop({"pattern": "^(a+)+$"}),
    prop({"pattern": "^[a-z][a-z0-9_-]{0,62}$"}),
    prop({"pattern": r"^\p{Lu}\w+ .{1,100}$"}),
    prop({"enum": [f"code-{n}" for n in range(2000)]}),
    prop({"items": {"type": "integer", "enum": list(range(31))}}),
    prop({"type": "number", "multipleOf": 0.01, "minimum": 0.5}),
    prop({"items": {"type": "string"}, "uniqueItems": True, "maxItems": 500}),
    prop({"format": "date-time"}),
    {"properties": {f"p{n}": {"type": "string", "maxLength": 20} for n in range(500)}},
    {"oneOf": [{"properties": {"kind": {"const": f"k{n}"}}} for n in range(100)]},
    {
        "definitions": {"old": {"type": "string"}},
        "properties": {"a": {"$ref": "#/definitions/old"}},
    },
    {"properties": {"$ref": {"type": "string"}, "$id": {"type": "string"}}},
]


@pytest.mark.parametrize("schema", ACCEPTED, ids=lambda s: json.dumps(s)[:40])
def test_schemas_people_write_are_accepted(schema: Schema) -> None:
    given = fresh(schema)
    assert schema_safety.check(given) is given


def test_the_catalogue_passes_its_own_gate() -> None:
    assert len(catalogue.entries()) >= 15
    for entry in catalogue.entries():
        schema_safety.check(entry.schema)


def test_the_engine_itself_opens_no_socket_and_no_file(tmp_path: Path) -> None:
    there = tmp_path / "there.json"
    there.write_text("{}")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        port = server.getsockname()[1]
        for address in (
            f"http://127.0.0.1:{port}/s",
            f"https://127.0.0.1:{port}/s",
            there.as_uri(),
        ):
            for schema in ({"$ref": address}, {"$id": address, "$ref": "s2"}):
                with pytest.raises(ValueError, match="Retrieval is disabled"):
                    compile_schema(schema)
            compile_schema({"$schema": address, "type": "object"})
        with pytest.raises(TimeoutError):
            server.accept()


def filled(value: Any) -> list[Any]:
    """As many copies as fit into a payload."""
    return [value] * (
        (MAX_PAYLOAD_BYTES - 100) // (len(json.dumps(value, separators=(",", ":"))) + 1)
    )


def choices(count: int) -> list[Schema]:
    return [{"minimum": number} for number in range(1, count)] + [{"type": "integer"}]


def each(schema: Schema) -> Schema:
    """Tried on every item: with an alternative that always fits, none ends the work early."""
    return {"items": {"anyOf": [schema, {}]}}


def unique(kind: str) -> Schema:
    return {"items": {"type": kind}, "uniqueItems": True, "maxItems": 1000}


TEXT_OF_AB = "ab" * ((MAX_PAYLOAD_BYTES - 100) // 2)
CLOSE_NUMBERS = [2**62 + n for n in range(1000)]
TINY = 5e-324
WORST: list[tuple[str, Schema, Any]] = [
    ("pattern", {"pattern": "(a|b)*a(a|b){180}c"}, TEXT_OF_AB),
    ("counted pattern", {"pattern": "a{900}"}, TEXT_OF_AB.replace("b", "a")),
    ("unique numbers", {"uniqueItems": True, "maxItems": 1000}, CLOSE_NUMBERS),
    ("lists of unique numbers", each(unique("integer")), [CLOSE_NUMBERS] * 13),
    ("lists of fractions", each(unique("integer")), filled([TINY * n for n in range(1, 16)])),
    ("fractions in an enum", each({"enum": [0.5, 1.5, 2.5]}), filled(TINY)),
    ("integers in an enum", each({"type": "integer", "enum": list(range(70))}), filled(1e17)),
    ("fractions for integers", each({"enum": list(range(70))}), filled(TINY)),
    ("fractional step", each({"multipleOf": 0.01}), filled(TINY)),
    ("many alternatives", {"items": {"oneOf": choices(700)}}, filled(0)),
    ("many formats", {"items": {"anyOf": [{"format": "idn-hostname"}] * 200}}, filled("é" * 60)),
]


@pytest.mark.parametrize(("name", "schema", "value"), WORST, ids=[w[0] for w in WORST])
def test_the_worst_value_for_an_accepted_schema_ends_soon(
    name: str, schema: Schema, value: Any
) -> None:
    checked = fresh(prop(schema))
    schema_safety.check(checked)
    payload = {"a": value}
    assert len(json.dumps(payload, separators=(",", ":"))) <= MAX_PAYLOAD_BYTES
    started = time.process_time()
    compile_schema(checked).is_valid(payload)
    # A bound, not a benchmark: the same without the gate took minutes.
    assert time.process_time() - started < 20


def refused(schema: Schema, payload: Schema) -> InvalidEvent:
    registry = Registry([CatalogueEntry("test.thing.made", 1, schema)])
    with pytest.raises(InvalidEvent) as found:
        registry.check(Event.make("test.thing.made", payload, source="test"))
    return found.value


def test_every_violation_is_listed_while_that_is_bounded() -> None:
    few = refused(prop({"items": {"type": "string"}}), {"a": [1, 2, "x", 3]})
    assert [v.path for v in few.violations] == ["/payload/a/0", "/payload/a/1", "/payload/a/3"]
    more = refused(prop({"items": {"type": "string"}}), {"a": [1] * 500})
    assert len(more.violations) == MAX_VIOLATIONS + 1
    assert "more than" in more.violations[-1].message


def test_a_payload_that_breaks_a_rule_everywhere_costs_no_memory() -> None:
    # The engine would list 80 million errors of a kilobyte each.
    schema = prop({"items": {"required": [f"p{n}" for n in range(900)]}})
    schema_safety.check(schema)
    found = refused(schema, {"a": filled({})})
    first, note = found.violations
    assert first.path == "/payload/a/0" and "required" in first.message
    assert "only the first" in note.message


@pytest.mark.parametrize(
    "text",
    [
        "^sha256:[0-9a-f]{64}$",
        r"^\d{4}-\d\d$",
        "^(foo|bar)+x?$",
        "^[^/]+$",
        r"^\w+@\w+\.com$",
        "abc",
        r"^[\w.-]{2,5}?$",
        "^(?:a|(?<n>b))$",
        r"^\u00e9\x41\.$",
        "[]a]",
    ],
)
def test_samples_match_their_pattern(text: str) -> None:
    validator = compile_schema({"pattern": text})
    found = pattern.samples(text)
    assert any(validator.is_valid(sample) for sample in found), found


@pytest.mark.parametrize("items", [{"type": "string"}, {"type": ["integer", "null"]}, {}])
def test_unique_items_means_the_same_with_and_without_a_type(items: Schema) -> None:
    schema = prop({"type": "array", "items": items, "uniqueItems": True, "maxItems": 5})
    validator = compile_schema(schema_safety.check(schema))
    for value, is_valid in (([], True), ([1], {"type": "string"} != items), (["a", "a"], False)):
        assert validator.is_valid({"a": value}) is is_valid, value
    same = {"a": [7, 7] if "integer" in str(items) else ["x", "x"]}
    (error,) = validator.iter_errors(same)
    assert "non-unique" in error.message and error.instance_path == ["a"]
