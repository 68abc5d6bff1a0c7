"""Compatibility: common changes are judged as people judge them, and shown by a payload."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.schemas import Schema, proves
from tristore.events import catalogue
from tristore.events.registry.compatibility import compare
from tristore.events.registry.schema_gap import MAX_SHOWN

TEXT, WHOLE = {"type": "string"}, {"type": "integer"}


def obj(properties: Schema, *required: str, **more: Any) -> Schema:
    return {"type": "object", "properties": properties, "required": list(required), **more}


def having(schema: Schema) -> Schema:
    return obj({"a": schema})


def closed(properties: Schema, *required: str) -> Schema:
    return obj(properties, *required, additionalProperties=False)


def tree(name: str, value: Schema) -> Schema:
    node = obj({"value": value, "next": {"$ref": f"#/$defs/{name}"}}, "value")
    return {"$defs": {name: node}, "properties": {"tree": {"$ref": f"#/$defs/{name}"}}}


def union(*extra: Schema) -> Schema:
    cat = obj({"kind": {"const": "cat"}, "lives": WHOLE}, "kind")
    dog = obj({"kind": {"const": "dog"}, "name": TEXT}, "kind")
    return having({"oneOf": [cat, dog, *extra]})


BIRD = obj({"kind": {"const": "bird"}}, "kind")
CASES: list[tuple[str, Schema, Schema, str]] = [
    ("optional property added", obj({"a": TEXT}, "a"), obj({"a": TEXT, "b": WHOLE}, "a"), "both"),
    ("optional added, closed", closed({"a": TEXT}), closed({"a": TEXT, "b": WHOLE}), "backward"),
    ("optional property removed", obj({"a": TEXT, "b": WHOLE}), obj({"a": TEXT}), "both"),
    ("optional removed, closed", closed({"a": TEXT, "b": WHOLE}), closed({"a": TEXT}), "forward"),
    ("required property added", obj({"a": TEXT}), obj({"a": TEXT, "b": WHOLE}, "b"), "forward"),
    ("required property removed", obj({"a": TEXT}, "a"), obj({}), "backward"),
    ("now required", obj({"a": TEXT}), obj({"a": TEXT}, "a"), "forward"),
    ("no longer required", obj({"a": TEXT}, "a"), obj({"a": TEXT}), "backward"),
    ("closed", obj({"a": TEXT}), closed({"a": TEXT}), "forward"),
    ("opened", closed({"a": TEXT}), obj({"a": TEXT}), "backward"),
    ("free object described", having({"type": "object"}), having(obj({"b": WHOLE})), "both"),
    ("type changed", having(TEXT), having(WHOLE), "neither"),
    ("type widened", having(WHOLE), having({"type": "number"}), "backward"),
    ("type narrowed", having({"type": ["string", "null"]}), having(TEXT), "forward"),
    ("enum value added", having({"enum": ["x"]}), having({"enum": ["x", "y"]}), "backward"),
    ("enum value removed", having({"enum": ["x", "y"]}), having({"enum": ["x"]}), "forward"),
    ("enum on text", having(TEXT), having({"enum": ["x"]}), "forward"),
    ("minimum raised", having({**WHOLE, "minimum": 0}), having({**WHOLE, "minimum": 5}), "forward"),
    (
        "bound said otherwise",
        having({**WHOLE, "minimum": 1}),
        having({**WHOLE, "exclusiveMinimum": 0}),
        "both",
    ),
    (
        "step coarser",
        having({**WHOLE, "multipleOf": 2}),
        having({**WHOLE, "multipleOf": 4}),
        "forward",
    ),
    (
        "step finer",
        having({**WHOLE, "multipleOf": 4}),
        having({**WHOLE, "multipleOf": 2}),
        "backward",
    ),
    ("maximum added", having(WHOLE), having({**WHOLE, "maximum": 10}), "forward"),
    ("maxLength loosened", having({**TEXT, "maxLength": 3}), having(TEXT), "backward"),
    ("format added", having(TEXT), having({**TEXT, "format": "date-time"}), "forward"),
    ("pattern added", having(TEXT), having({**TEXT, "pattern": "^[a-z]+$"}), "forward"),
    (
        "pattern changed",
        having({**TEXT, "pattern": "^a{3}$"}),
        having({**TEXT, "pattern": "^b{3}$"}),
        "neither",
    ),
    ("items narrowed", having({"items": {}}), having({"items": TEXT}), "forward"),
    ("maxItems lowered", having({"maxItems": 9}), having({"maxItems": 3}), "forward"),
    (
        "nested in a list",
        having({"type": "array", "items": obj({"p": WHOLE})}),
        having({"type": "array", "items": obj({"p": WHOLE, "q": TEXT}, "q")}),
        "forward",
    ),
    (
        "map narrowed",
        obj({}, additionalProperties={}),
        obj({}, additionalProperties=TEXT),
        "forward",
    ),
    (
        "named in a map of text",
        obj({}, additionalProperties=TEXT),
        obj({"b": WHOLE}, additionalProperties=TEXT),
        "neither",
    ),
    (
        "same text in a map",
        obj({}, additionalProperties=TEXT),
        obj({"b": TEXT}, additionalProperties=TEXT),
        "both",
    ),
    ("definition renamed", tree("old", WHOLE), tree("new", WHOLE), "both"),
    ("inside a recursion", tree("t", WHOLE), tree("t", {**WHOLE, "maximum": 9}), "forward"),
    ("alternative added", union(), union(BIRD), "backward"),
    (
        "type list as anyOf",
        having({"type": ["string", "null"]}),
        having({"anyOf": [TEXT, {"type": "null"}]}),
        "both",
    ),
    (
        "allOf taken apart",
        {"allOf": [obj({"a": TEXT}, "a"), obj({"b": WHOLE})]},
        obj({"a": TEXT, "b": WHOLE}, "a"),
        "both",
    ),
    ("description only", {"title": "x", **having(TEXT)}, having({**TEXT, "title": "y"}), "both"),
    ("nothing said before", {}, obj({"a": TEXT}), "both"),
]


@pytest.mark.parametrize(("name", "old", "new", "compatible"), CASES, ids=[c[0] for c in CASES])
def test_common_changes_are_judged_as_people_judge_them(
    name: str, old: Schema, new: Schema, compatible: str
) -> None:
    verdict = compare(old, new)
    wanted = {"both": (True, True), "neither": (False, False)}
    wanted |= {"backward": (True, False), "forward": (False, True)}
    assert (verdict.backward, verdict.forward) == wanted[compatible], verdict.changes
    # All of these are plain enough to be shown and not only suspected.
    for change in verdict.changes:
        assert change.certain and proves(change, old, new), change


def test_a_verdict_names_the_place_the_change_and_a_payload() -> None:
    old = obj(
        {"order": obj({"lines": {"type": "array", "items": obj({"n": WHOLE}, "n")}}, "lines")}
    )
    new = obj(
        {
            "order": obj(
                {"lines": {"type": "array", "items": obj({"n": {**WHOLE, "minimum": 1}})}}, "lines"
            )
        }
    )
    backward, forward = compare(old, new).changes
    assert (backward.path, backward.breaks) == ("/order/lines/*/n", "backward")
    assert backward.change == "minimum changed from none to 1"
    assert backward.example == {"order": {"lines": [{"n": 0}]}}
    assert (forward.path, forward.breaks) == ("/order/lines/*/n", "forward")
    assert forward.change == "is no longer required"
    assert forward.example == {"order": {"lines": [{}]}}


def test_a_harmless_change_is_named_too() -> None:
    old, new = obj({"a": obj({"gone": TEXT})}), obj({"a": obj({"came": TEXT})})
    changes = {(c.path, c.change, c.breaks) for c in compare(old, new).changes}
    assert changes == {
        ("/a/came", "optional property added", None),
        ("/a/gone", "property removed", None),
    }


def test_what_cannot_be_decided_may_break() -> None:
    old = having({**TEXT, "pattern": "^a+$"})
    new = having({**TEXT, "pattern": "^a+b?$"})
    backward = next(c for c in compare(old, new).changes if c.breaks == "backward")
    assert not backward.certain and backward.example is None
    assert "may break" in backward.change
    # In the other direction a payload was found, so it is certain.
    forward = next(c for c in compare(old, new).changes if c.breaks == "forward")
    assert forward.certain and proves(forward, old, new)


INTRICATE: list[tuple[str, Schema, Schema]] = [
    ("not added", having(TEXT), having({**TEXT, "not": {"const": "secret"}})),
    ("overlap", having(WHOLE), having({"oneOf": [WHOLE, {"minimum": 5}]})),
    ("condition added", having(WHOLE), having({"if": {"minimum": 77}, "then": {"maximum": 78}})),
    ("contains added", having({"type": "array"}), having({"contains": {"const": 1}})),
    ("names limited", obj({"a": TEXT}), obj({"a": TEXT}, propertyNames={"maxLength": 3})),
    (
        "all evaluated",
        {"allOf": [obj({"a": TEXT})]},
        {"allOf": [obj({"a": TEXT})], "unevaluatedProperties": False},
    ),
    (
        "dependency",
        obj({"a": TEXT, "b": TEXT}),
        obj({"a": TEXT, "b": TEXT}, dependentRequired={"a": ["b"]}),
    ),
]


@pytest.mark.parametrize(("name", "old", "new"), INTRICATE, ids=[c[0] for c in INTRICATE])
def test_an_intricate_rule_that_is_added_counts_as_a_break(
    name: str, old: Schema, new: Schema
) -> None:
    verdict = compare(old, new)
    assert not verdict.backward
    assert all(proves(c, old, new) for c in verdict.changes if c.certain)
    # Unchanged, it is no reason to refuse a version.
    added = {**new, "properties": {**new.get("properties", {}), "more": WHOLE}}
    assert compare(new, new).changes == [] and compare(new, added).backward


def test_every_catalogue_schema_is_compatible_with_itself_and_an_added_field() -> None:
    for entry in catalogue.entries():
        assert compare(entry.schema, entry.schema).changes == []
        added = {**entry.schema, "properties": {**entry.schema["properties"], "added": TEXT}}
        verdict = compare(entry.schema, added)
        assert verdict.backward, entry.type
        # The catalogue's objects are closed, so an older reader refuses the new field.
        (change,) = verdict.changes
        assert change.breaks == "forward" and proves(change, entry.schema, added)


def test_intricate_schemas_end_with_a_conservative_verdict() -> None:
    def nest(depth: int, leaf: Schema) -> Schema:
        for _ in range(depth):
            leaf = {"anyOf": [closed({"x": leaf}, "x"), closed({"y": leaf, "z": leaf}, "y")]}
        return {"properties": {"a": leaf}}

    verdict = compare(nest(5, WHOLE), nest(5, TEXT))
    assert not verdict.backward and not verdict.forward


def page_rows() -> list[list[str]]:
    page = (Path(__file__).parents[2] / "docs" / "schemas.md").read_text("utf-8")
    rows = [line.strip("|").split(" | ") for line in page.splitlines() if '| `{"prop' in line]
    return [[cell.strip() for cell in row] for row in rows]


@pytest.mark.parametrize("row", page_rows(), ids=lambda row: row[0])
def test_the_page_tells_the_truth(row: list[str]) -> None:
    _, old, new, *said = row
    verdict = compare(json.loads(old.strip("`")), json.loads(new.strip("`")))
    for direction, cell in zip(("backward", "forward"), said, strict=True):
        broken = [change for change in verdict.changes if change.breaks == direction]
        if cell == "yes":
            assert broken == []
            continue
        (change,) = broken
        assert change.certain is (cell != "may break")
        if change.certain:
            assert change.example == json.loads(cell.removeprefix("no: ").strip("`"))


def test_the_page_has_its_rows() -> None:
    assert len(page_rows()) >= 13


LARGE = [
    ("names", lambda kind: {"properties": {f"p{n}": {"type": kind} for n in range(1000)}}),
    ("union", lambda kind: union(*[variant(n, kind) for n in range(60)])),
    ("places", lambda kind: having({"prefixItems": [{"type": kind}] * 400})),
    ("tree", lambda kind: tree("t", {"anyOf": [{"type": kind}, {"$ref": "#/$defs/t"}]})),
]


def variant(number: int, kind: str) -> Schema:
    return obj({"kind": {"const": f"k{number}"}, "value": {"type": kind}}, "kind")


@pytest.mark.parametrize(("name", "make"), LARGE, ids=[one[0] for one in LARGE])
def test_a_verdict_on_large_schemas_ends_soon(name: str, make: Callable[[str], Schema]) -> None:
    old, new = make("string"), make("integer")
    started = time.process_time()
    verdict = compare(old, new)
    assert time.process_time() - started < 20
    assert not verdict.backward and not verdict.forward
    assert any(change.certain and proves(change, old, new) for change in verdict.changes)
    assert len(verdict.changes) <= 2 * (MAX_SHOWN + 1)
