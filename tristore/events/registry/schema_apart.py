"""Whether two schemas have no value in common, which `oneOf` asks of its alternatives."""

from typing import Any

from tristore.events.registry.schema_document import Node
from tristore.events.registry.schema_shape import Shape
from tristore.events.registry.schema_side import Side, same


def apart(writer: Side, shape: Shape, reader: Side, other: Node) -> bool:
    """No value of the writer's shape is accepted by the reader's other schema; False if unsure."""
    if all(_differs(writer, shape, reader, one) for one in reader.shapes(other)):
        return True
    return any(same(writer, one, reader, other) for one in shape.excluded)


def _differs(writer: Side, shape: Shape, reader: Side, other: Shape) -> bool:
    if shape.kind != other.kind:
        return {shape.kind, other.kind} != {"integer", "number"}
    # Objects differ by a property that is always there and never has a value the other takes.
    return shape.kind == "object" and any(
        not any(reader.accepts(other.member(name)[0], value) for value in values)
        for name in shape.required
        if (values := _only_values(writer, shape.member(name)[0])) is not None
    )


def _only_values(side: Side, node: Node) -> list[Any] | None:
    found: list[Any] = []
    for shape in side.shapes(node):
        if (values := shape.values()) is None:
            return None
        found += values
    return found
