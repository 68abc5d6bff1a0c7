"""Random schemas: no payload refutes a "compatible", and every example really breaks."""

from random import Random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.schemas import NAMES, Schema, beside, payload, proves, versions
from tristore.events.registry.compatibility import compare
from tristore.events.registry.schema_engine import compile_schema

PAYLOADS = 150


@settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck))
@given(versions(), st.integers(0, 2**32))
def test_no_payload_refutes_a_verdict(pair: tuple[Schema, Schema], seed: int) -> None:
    old, new = pair
    verdict = compare(old, new)
    for change in verdict.changes:
        assert not change.certain or proves(change, old, new), change
        assert change.certain or "may break" in change.change
    for writer, reader, said in ((old, new, verdict.backward), (new, old, verdict.forward)):
        if said:
            assert refutation(writer, reader, Random(seed)) is None


def refutation(writer: Schema, reader: Schema, chance: Random) -> Any:
    sends, accepts = compile_schema(writer), compile_schema(reader)
    for _ in range(PAYLOADS):
        sent = payload(chance, writer)
        if sends.is_valid(sent) and not accepts.is_valid(sent):
            if not newly_named(sent, (writer, [writer]), (reader, [reader])):
                return sent
    return None


Side = tuple[Schema, list[Any]]


def newly_named(value: Any, writer: Side, reader: Side) -> bool:
    """It has a property that the writer's schema leaves open and the reader's names: that is
    taken as never sent, so it refutes nothing."""
    if isinstance(value, dict):
        for name in value:
            was_open = not any(speaks_of(writer[0], node, name) for node in writer[1])
            named = any(speaks_of(reader[0], node, name) for node in reader[1])
            if was_open and named and (name in NAMES or patterned(reader[1], name)):
                return True
    steps: Any = value.items() if isinstance(value, dict) else ()
    steps = enumerate(value) if isinstance(value, list) else steps
    return any(newly_named(x, deeper(writer, step), deeper(reader, step)) for step, x in steps)


def speaks_of(schema: Schema, node: Any, name: str) -> bool:
    """Whether any part of the schema at this place says something about the property."""
    if isinstance(node, bool):
        return False
    if any(name in node.get(k, ()) for k in ("properties", "required", "dependentRequired")):
        return True
    if node.get("additionalProperties", node.get("unevaluatedProperties", True)) not in (True, {}):
        return True
    if patterned([node], name):
        return True
    return any(speaks_of(schema, sub, name) for sub in beside(schema, node))


def patterned(nodes: list[Any], name: str) -> bool:
    patterns = [p for n in nodes if isinstance(n, dict) for p in n.get("patternProperties", ())]
    return any(compile_schema({"pattern": pattern}).is_valid(name) for pattern in patterns)


def deeper(side: Side, step: str | int) -> Side:
    schema, nodes = side
    return schema, [sub for node in nodes for sub in below(schema, node, step)]


def below(schema: Schema, node: Any, step: str | int) -> list[Any]:
    """Every subschema that may apply to a member or an item."""
    if isinstance(node, bool):
        return []
    if isinstance(step, int):
        found = [*node.get("prefixItems", [])[step : step + 1], node.get("items", True)]
        found.append(node.get("contains", True))
    else:
        found = [node.get("properties", {}).get(step, True)]
        found += node.get("patternProperties", {}).values()
        found += [node.get(k, True) for k in ("additionalProperties", "unevaluatedProperties")]
    return found + [sub for other in beside(schema, node) for sub in below(schema, other, step)]
