"""Random schemas, neighbours of them, and payloads that probably fit."""

import copy
from collections.abc import Iterator
from random import Random
from typing import Any

from hypothesis import strategies as st

from tristore.errors import InvalidSchema
from tristore.events.registry import schema_safety
from tristore.events.registry.compatibility import Change
from tristore.events.registry.schema_engine import compile_schema

Schema = dict[str, Any]

NAMES = ("a", "b", "c")
# Never a name of a property: what these hold was open to the writer and stays open to the reader.
FREE = ("free1", "free2")
STRINGS = ["", "a", "b", "aa", "ab", "abc", "2026-11-15", "\n"]
NUMBERS = [-2, -1, 0, 1, 2, 3, 4, 6, 10, 0.5, 1.5, 2.5, 1.0, -0.5, 10**12]
SCALARS = [None, True, False, *NUMBERS, *STRINGS]
KINDS = ["string", "integer", "number", "null", "boolean", "array", "object"]
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_MAPS = ("properties", "patternProperties", "$defs")
_SINGLE = ("items", "contains", "not", "if", "then", "else")
_OTHERS = ("additionalProperties", "unevaluatedProperties", "propertyNames")


def proves(change: Change, old: Schema, new: Schema) -> bool:
    """The example of a change is what it says: valid under the one, invalid under the other."""
    if change.breaks is None:
        return True
    writer, reader = (old, new) if change.breaks == "backward" else (new, old)
    sent = compile_schema(writer).is_valid(change.example)
    return sent and not compile_schema(reader).is_valid(change.example)


def usable(schema: Schema) -> bool:
    try:
        schema_safety.check(schema)
    except InvalidSchema:
        return False
    return True


def leaves() -> st.SearchStrategy[Schema]:
    bound, size = st.integers(-1, 4), st.integers(0, 3)
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
    several = st.lists(st.sampled_from(KINDS), min_size=1, max_size=3, unique=True)
    values = st.lists(st.sampled_from(SCALARS), min_size=1, max_size=3)
    return (
        number
        | string
        | st.fixed_dictionaries({"type": several})
        | st.fixed_dictionaries({"enum": values})
        | st.fixed_dictionaries({"const": st.sampled_from(SCALARS)})
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
    several = st.builds(
        lambda keyword, subs: {keyword: subs}, st.sampled_from(["anyOf", "allOf", "oneOf"]), few
    )
    deciding = {"not": inner, "if": inner, "then": inner, "else": inner}
    tests = st.fixed_dictionaries({}, optional=deciding)
    both = st.builds(lambda a, b: {**a, **b}, objects(inner), several)
    return array | unique | several | objects(inner) | both | tests


def objects(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    names = st.sampled_from(NAMES)
    patterns = st.sampled_from(["^free1", "^[ab]$"])
    return st.fixed_dictionaries(
        {"type": st.just("object")},
        optional={
            "properties": st.dictionaries(names, inner, max_size=3),
            "required": st.lists(names, max_size=2, unique=True),
            "additionalProperties": st.booleans() | inner,
            "patternProperties": st.dictionaries(patterns, inner, max_size=1),
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


@st.composite
def versions(draw: st.DrawFn) -> tuple[Schema, Schema]:
    """A schema and a neighbour of it, which is where mistakes hide; now and then a stranger."""
    old = draw(SCHEMAS.filter(usable))
    new = draw(SCHEMAS) if draw(st.integers(0, 4)) == 0 else draw(neighbours(old))
    return (old, new) if usable(new) else (old, old)


@st.composite
def neighbours(draw: st.DrawFn, schema: Schema) -> Schema:
    """The schema with a part of it replaced, or a keyword of a part taken away or added."""
    new: Schema = copy.deepcopy(schema)
    part = draw(st.sampled_from(list(_inside(new))))
    change = draw(st.sampled_from(["replace", "take", "add"]))
    if change == "take" and (keywords := sorted(set(part) - {"$defs"})):
        part.pop(draw(st.sampled_from(keywords)))
        return new
    if change == "replace" and part is not new:
        part.clear()
    other = draw(leaves() | composed(leaves()))
    part.update({key: value for key, value in other.items() if key not in part})
    return new


def _inside(node: Any) -> Iterator[Schema]:
    """Every subschema, the definitions included."""
    if not isinstance(node, dict):
        return
    yield node
    for keyword, value in node.items():
        if keyword in _MAPS:
            value = list(value.values())
        elif keyword in _SINGLE + _OTHERS:
            value = [value]
        elif keyword not in _LISTS:
            continue
        for sub in value:
            yield from _inside(sub)


def beside(schema: Schema, node: Schema) -> list[Any]:
    """Subschemas for the same value."""
    found = [sub for k in ("allOf", "anyOf", "oneOf") for sub in node.get(k, [])]
    found += [node[k] for k in ("if", "then", "else") if k in node]
    if "$ref" in node:
        found.append(schema["$defs"][node["$ref"].rpartition("/")[2]])
    return found


def payload(chance: Random, schema: Schema) -> Schema:
    """Most of what is quite random would be refused by any schema."""
    return _members(chance, schema, schema, 0)


def _value(chance: Random, schema: Schema, node: Any, depth: int) -> Any:
    if isinstance(node, bool) or depth > 4 or chance.random() < 0.1:
        return _anything(chance, depth)
    if choices := [*node.get("enum", []), *([node["const"]] if "const" in node else [])]:
        return chance.choice(choices)
    if (others := beside(schema, node)) and chance.random() < 0.7:
        found = _value(chance, schema, chance.choice(others), depth + 1)
        mixed = isinstance(found, dict) and chance.random() < 0.5
        return {**found, **_members(chance, schema, node, depth)} if mixed else found
    kinds = node.get("type", KINDS)
    kind = chance.choice(kinds if isinstance(kinds, list) else [kinds])
    if kind == "object":
        return _members(chance, schema, node, depth)
    if kind == "array":
        return _items(chance, schema, node, depth)
    scalars = {"string": STRINGS, "boolean": [True, False], "null": [None]}
    return chance.choice(scalars.get(kind, NUMBERS))


def _items(chance: Random, schema: Schema, node: Schema, depth: int) -> list[Any]:
    least = node.get("minItems", 0)
    prefix, rest = node.get("prefixItems", []), node.get("items", True)
    count = chance.randint(least, max(least, node.get("maxItems", 3)))
    places = [prefix[n] if n < len(prefix) else rest for n in range(count)]
    return [_value(chance, schema, place, depth + 1) for place in places]


def _members(chance: Random, schema: Schema, node: Schema, depth: int) -> dict[str, Any]:
    properties = node.get("properties", {})
    likely = [name for name in properties if chance.random() < 0.6]
    unlikely = [name for name in FREE + NAMES if chance.random() < 0.15]
    beyond = node.get("additionalProperties", True)
    return {
        name: _value(chance, schema, properties.get(name, beyond), depth + 1)
        for name in {*node.get("required", ()), *likely, *unlikely}
    }


def _anything(chance: Random, depth: int) -> Any:
    if depth > 4 or chance.random() < 0.6:
        return chance.choice(SCALARS)
    several = [_anything(chance, depth + 1) for _ in range(chance.randint(0, 3))]
    return several if chance.random() < 0.5 else dict(zip(NAMES, several, strict=False))
