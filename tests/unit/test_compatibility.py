"""Compatibility: what people expect of common changes, and verdicts that payloads never refute."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tristore.events import catalogue, schema_safety
from tristore.events.compatibility import Change, compare
from tristore.events.schema_engine import compile_schema

Schema = dict[str, Any]
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


def proves(change: Change, old: Schema, new: Schema) -> bool:
    if change.breaks is None:
        return True
    writer, reader = (old, new) if change.breaks == "backward" else (new, old)
    sent = compile_schema(writer).is_valid(change.example)
    return sent and not compile_schema(reader).is_valid(change.example)


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


NAMES = ("a", "b", "c")
# Never a name of a property: what these hold was open to the writer and stays open to the reader.
FREE = ("free1", "free2")
STRINGS = st.sampled_from(["", "a", "b", "aa", "ab", "abc", "2026-11-15", "\n"])
NUMBERS = st.sampled_from([-2, -1, 0, 1, 2, 3, 4, 6, 10, 0.5, 1.5, 2.5, 1.0, -0.5, 10**12])
SCALARS = st.none() | st.booleans() | NUMBERS | STRINGS


def payloads() -> st.SearchStrategy[Any]:
    def grow(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        members = st.dictionaries(st.sampled_from(NAMES + FREE), inner, max_size=4)
        return members | st.lists(inner, max_size=4)

    return st.recursive(SCALARS, grow, max_leaves=8)


def leaves() -> st.SearchStrategy[Schema]:
    bound = st.integers(-1, 4)
    size = st.integers(0, 3)
    number = st.fixed_dictionaries(
        {"type": st.sampled_from(["integer", "number"])},
        optional={
            "minimum": bound,
            "maximum": bound,
            "exclusiveMinimum": bound,
            "exclusiveMaximum": st.sampled_from([1.5, 3]),
            "multipleOf": st.sampled_from([1, 2, 3, 0.5]),
        },
    )
    string = st.fixed_dictionaries(
        {"type": st.just("string")},
        optional={
            "minLength": size,
            "maxLength": size,
            "pattern": st.sampled_from(["^a", "^a+$", "b"]),
            "format": st.just("date"),
        },
    )
    several = st.lists(
        st.sampled_from(["string", "integer", "number", "null", "boolean", "array", "object"]),
        min_size=1,
        max_size=3,
        unique=True,
    )
    return (
        number
        | string
        | st.fixed_dictionaries({"type": several})
        | st.fixed_dictionaries({"enum": st.lists(SCALARS, min_size=1, max_size=3)})
        | st.fixed_dictionaries({"const": SCALARS})
        | st.sampled_from([{}, {"$ref": "#/$defs/x"}, {"$ref": "#/$defs/y"}])
    )


def composed(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    few = st.lists(inner, min_size=1, max_size=3)
    array = st.fixed_dictionaries(
        {"type": st.just("array")},
        optional={
            "items": inner | st.booleans(),
            "prefixItems": few,
            "minItems": st.integers(0, 2),
            "maxItems": st.integers(0, 3),
            "contains": inner,
        },
    )
    unique = array.map(lambda found: {**found, "uniqueItems": True, "maxItems": 3})
    choice = st.sampled_from(["anyOf", "allOf", "oneOf"])
    several = st.builds(lambda keyword, subs: {keyword: subs}, choice, few)
    tests = st.fixed_dictionaries(
        {}, optional={"not": inner, "if": inner, "then": inner, "else": inner}
    )
    both = st.builds(lambda a, b: {**a, **b}, objects(inner), several)
    return array | unique | several | objects(inner) | both | tests


def objects(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    names = st.sampled_from(NAMES)
    return st.fixed_dictionaries(
        {"type": st.just("object")},
        optional={
            "properties": st.dictionaries(names, inner, max_size=3),
            "required": st.lists(names, max_size=2, unique=True),
            "additionalProperties": st.booleans() | inner,
            "patternProperties": st.dictionaries(
                st.sampled_from(["^free1", "^[ab]$"]), inner, max_size=1
            ),
            "minProperties": st.integers(0, 2),
            "maxProperties": st.integers(0, 3),
            "dependentRequired": st.dictionaries(names, st.lists(names, max_size=1), max_size=1),
            "propertyNames": st.sampled_from([{"maxLength": 1}, {"pattern": "^[a-c]"}]),
            "unevaluatedProperties": st.booleans() | inner,
        },
    )


SUBSCHEMAS = st.recursive(leaves(), composed, max_leaves=5)
SCHEMAS = st.builds(
    lambda root, x, y: {**root, "$defs": {"x": x, "y": y}},
    objects(SUBSCHEMAS),
    SUBSCHEMAS.filter(lambda node: "$ref" not in str(node)),
    objects(leaves()),
)


def usable(schema: Schema) -> bool:
    try:
        schema_safety.check(schema)
    except schema_safety.InvalidSchema:
        return False
    return True


@st.composite
def versions(draw: st.DrawFn) -> tuple[Schema, Schema]:
    """A schema and a neighbour of it, which is where mistakes hide; now and then a stranger."""
    old = draw(SCHEMAS.filter(usable))
    new = draw(SCHEMAS) if draw(st.integers(0, 4)) == 0 else draw(neighbours(old))
    return (old, new) if usable(new) else (old, old)


@st.composite
def neighbours(draw: st.DrawFn, schema: Schema) -> Schema:
    """The schema with one of its parts replaced, or one keyword of a part taken or added."""
    new: Schema = copy.deepcopy(schema)
    parts = list(inside(new))
    part = draw(st.sampled_from(parts))
    other = draw(leaves() | composed(leaves()))
    kind = draw(st.sampled_from(["replace", "take", "add"]))
    if kind == "replace" and part is not new:
        part.clear()
    if kind == "take" and len(part) > 1:
        part.pop(draw(st.sampled_from(sorted(set(part) - {"$defs"} or set(part)))))
    else:
        part.update({key: value for key, value in other.items() if key not in part})
    new.setdefault("$defs", schema["$defs"])
    return new


def inside(node: Any) -> Iterator[Schema]:
    """Every subschema, the definitions included; those that are no objects are left out."""
    if isinstance(node, dict):
        yield node
        for keyword, value in node.items():
            if keyword in ("properties", "patternProperties", "$defs"):
                for sub in value.values():
                    yield from inside(sub)
            elif keyword in ("allOf", "anyOf", "oneOf", "prefixItems"):
                for sub in value:
                    yield from inside(sub)
            elif keyword in ("items", "contains", "not", "if", "then", "else"):
                yield from inside(value)
            elif keyword in ("additionalProperties", "unevaluatedProperties", "propertyNames"):
                yield from inside(value)


@st.composite
def sent(draw: st.DrawFn, schema: Schema, node: Any, depth: int = 0) -> Any:
    """A payload that probably fits: most of what is random would be refused by both schemas."""
    if isinstance(node, bool) or depth > 4 or draw(st.integers(0, 9)) == 0:
        return draw(payloads())
    if choices := [*node.get("enum", []), *([node["const"]] if "const" in node else [])]:
        return draw(st.sampled_from(choices))
    if (others := beside(schema, node)) and draw(st.booleans()):
        found = draw(sent(schema, draw(st.sampled_from(others)), depth + 1))
        if not isinstance(found, dict):
            return found
        return {**found, **draw(members(schema, node, depth))}
    kinds = node.get("type", ["object", "array", "string", "number", "null"])
    kind = draw(st.sampled_from(kinds if isinstance(kinds, list) else [kinds]))
    if kind == "object":
        return draw(members(schema, node, depth))
    if kind == "array":
        count = draw(st.integers(node.get("minItems", 0), node.get("maxItems", 3)))
        places = [below(schema, node, index)[0] for index in range(count)]
        return [draw(sent(schema, place, depth + 1)) for place in places]
    scalars = {"string": STRINGS, "boolean": st.booleans(), "null": st.none()}
    return draw(scalars.get(kind, NUMBERS))


@st.composite
def members(draw: st.DrawFn, schema: Schema, node: Schema, depth: int) -> dict[str, Any]:
    properties = node.get("properties", {})
    wanted = {
        *node.get("required", ()),
        *draw(st.sets(st.sampled_from(sorted(properties) or ["a"]))),
    }
    wanted |= draw(st.sets(st.sampled_from(FREE), max_size=1))
    beyond = node.get("additionalProperties", True)
    return {
        name: draw(sent(schema, properties.get(name, beyond), depth + 1)) for name in sorted(wanted)
    }


def speaks_of(schema: Schema, node: Any, name: str) -> bool:
    """Whether any part of the schema at this place says something about the property."""
    if isinstance(node, bool):
        return False
    if any(name in node.get(k, ()) for k in ("properties", "required", "dependentRequired")):
        return True
    if node.get("additionalProperties", node.get("unevaluatedProperties", True)) not in (True, {}):
        return True
    if any(
        compile_schema({"pattern": p}).is_valid(name) for p in node.get("patternProperties", {})
    ):
        return True
    return any(speaks_of(schema, sub, name) for sub in beside(schema, node))


def beside(schema: Schema, node: Schema) -> list[Any]:
    found = [sub for k in ("allOf", "anyOf", "oneOf") for sub in node.get(k, [])]
    found += [node[k] for k in ("if", "then", "else") if k in node]
    if "$ref" in node:
        found.append(schema["$defs"][node["$ref"].rpartition("/")[2]])
    return found


def below(schema: Schema, node: Any, step: str | int) -> list[Any]:
    """Every subschema that may apply to a member or an item."""
    if isinstance(node, bool):
        return []
    found = [below(schema, sub, step) for sub in beside(schema, node)]
    if isinstance(step, int):
        subs = [*node.get("prefixItems", [])[step : step + 1], node.get("items", True)]
        subs.append(node.get("contains", True))
    else:
        subs = [
            node.get("properties", {}).get(step, True),
            *node.get("patternProperties", {}).values(),
        ]
        subs += [node.get("additionalProperties", True), node.get("unevaluatedProperties", True)]
    return [*subs, *(sub for more in found for sub in more)]


def newly_named(payload: Any, old: tuple[Schema, list[Any]], new: tuple[Schema, list[Any]]) -> bool:
    """The payload uses a property that the writer's schema leaves open and the reader's names:
    taken as never sent, so it refutes nothing."""
    if isinstance(payload, dict):
        for name in payload:
            was = any(speaks_of(old[0], node, name) for node in old[1])
            if not was and any(speaks_of(new[0], node, name) for node in new[1]):
                return name in NAMES or not closes(new[1])
    steps = (
        payload.items()
        if isinstance(payload, dict)
        else enumerate(payload)
        if isinstance(payload, list)
        else ()
    )
    return any(
        newly_named(
            value,
            (old[0], [sub for node in old[1] for sub in below(old[0], node, step)]),
            (new[0], [sub for node in new[1] for sub in below(new[0], node, step)]),
        )
        for step, value in steps
    )


def closes(nodes: list[Any]) -> bool:
    return any(
        isinstance(n, dict) and n.get("additionalProperties", True) is not True for n in nodes
    )


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(versions(), st.data())
def test_no_payload_refutes_a_verdict(pair: tuple[Schema, Schema], data: st.DataObject) -> None:
    old, new = pair
    verdict = compare(old, new)
    for change in verdict.changes:
        if change.breaks is not None and change.certain:
            assert proves(change, old, new), change
    directions = [(old, new, verdict.backward), (new, old, verdict.forward)]
    for writer, reader, compatible in directions:
        if not compatible:
            continue
        sends, accepts = compile_schema(writer), compile_schema(reader)
        likely = members(writer, writer, 0) | dictionaries()
        for payload in data.draw(st.lists(likely, min_size=25, max_size=25)):
            if sends.is_valid(payload) and not accepts.is_valid(payload):
                assert newly_named(payload, (writer, [writer]), (reader, [reader])), payload


def dictionaries() -> st.SearchStrategy[Any]:
    return st.dictionaries(st.sampled_from(NAMES + FREE), payloads(), max_size=4)
