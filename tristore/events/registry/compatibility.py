"""What a new version of a schema breaks: each change by name, with a payload that shows it.

Backward: the new schema accepts what publishers of the old one send. Forward: the old schema
accepts what publishers of the new one send. An example was valid under the one and invalid under
the other when the engine itself was asked; a break without one could not be ruled out.
"""

from dataclasses import dataclass
from typing import Any, Literal

from tristore.events.registry.schema_document import Node, pointer
from tristore.events.registry.schema_gap import MAX_SHOWN, Gap, TooComplex
from tristore.events.registry.schema_inclusion import Inclusion
from tristore.events.registry.schema_shape import Shape
from tristore.events.registry.schema_side import Side, text

Mode = Literal["backward", "forward", "full", "none"]
Direction = Literal["backward", "forward"]
_MAX_PROBES = 60


@dataclass(frozen=True, slots=True)
class Change:
    """`certain` where an example proves it, or where nothing breaks."""

    path: str
    change: str
    breaks: Direction | None
    example: Any = None
    certain: bool = True

    def to_json(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "change": self.change,
            "breaks": self.breaks,
            "example": self.example,
            "certain": self.certain,
        }


@dataclass(frozen=True, slots=True)
class Verdict:
    changes: list[Change]

    @property
    def backward(self) -> bool:
        return not any(change.breaks == "backward" for change in self.changes)

    @property
    def forward(self) -> bool:
        return not any(change.breaks == "forward" for change in self.changes)

    def allows(self, mode: Mode) -> bool:
        needed = {"backward": [self.backward], "forward": [self.forward], "none": []}
        return all(needed.get(mode, [self.backward, self.forward]))

    def against(self, mode: Mode) -> list[Change]:
        """The changes for which the mode refuses the new schema."""
        wanted = ("backward", "forward") if mode == "full" else (mode,)
        return [change for change in self.changes if change.breaks in wanted]

    def to_json(self, mode: Mode) -> dict[str, Any]:
        return {
            "compatible": self.allows(mode),
            "mode": mode,
            "backward": self.backward,
            "forward": self.forward,
            "changes": [change.to_json() for change in self.changes],
        }


def compare(old: dict[str, Any], new: dict[str, Any]) -> Verdict:
    """Both must have passed `schema_safety.check`."""
    before, after = Side(old), Side(new)
    changes = [*_breaks("backward", before, after), *_breaks("forward", after, before)]
    touched = {change.path for change in changes}
    return Verdict(changes + [c for c in _harmless(before, after) if c.path not in touched])


def _breaks(direction: Direction, writer: Side, reader: Side) -> list[Change]:
    try:
        gaps = Inclusion(writer, reader).gaps()
    except TooComplex:
        return [Change("", "too intricate to compare; it may break", direction, certain=False)]
    found = [_change(direction, gap, writer, reader) for gap in gaps[:MAX_SHOWN]]
    if more := len(gaps) - len(found):
        found.append(Change("", f"and {more} more; they may break", direction, certain=False))
    return found


def _change(direction: Direction, gap: Gap, writer: Side, reader: Side) -> Change:
    example = _witness(gap, writer, reader)
    said = describe(direction, gap)
    if example is None:
        return Change(pointer(*gap.path), f"{said}; it may break", direction, certain=False)
    return Change(pointer(*gap.path), said, direction, example)


def _witness(gap: Gap, writer: Side, reader: Side) -> dict[str, Any] | None:
    """A payload that breaks, if one was found: best one that breaks here and nowhere else."""
    found: list[tuple[tuple[bool, int, int], dict[str, Any]]] = []
    probes = [probe for probe in gap.probes[:_MAX_PROBES] if isinstance(probe, dict)]
    for probe in sorted(probes, key=len):
        if not writer.validator.is_valid(probe) or reader.validator.is_valid(probe):
            continue
        places = [tuple(error.instance_path) for error in reader.validator.iter_errors(probe)]
        elsewhere = not any(_same_place(gap.path, place) for place in places)
        if len(places) == 1 and not elsewhere:
            return probe
        found.append(((elsewhere, len(places), len(text(probe))), probe))
    return min(found, key=lambda one: one[0])[1] if found else None


def _same_place(path: tuple[str | int, ...], place: tuple[str | int, ...]) -> bool:
    shared = [a for a, b in zip(path, place, strict=False) if a in (b, "*")]
    return len(shared) == len(place) and len(path) - len(place) <= 1


def describe(direction: Direction, gap: Gap) -> str:
    """The change in words: backward, the writer's side is the old one; forward, the new one."""
    backward = direction == "backward"
    if phrases := _PHRASES.get(gap.keyword):
        return phrases[0 if backward else 1].format(sent=_words(gap))
    old, new = (gap.sent, gap.asked) if backward else (gap.asked, gap.sent)
    if gap.keyword in _COMPARED:
        return f"{gap.keyword} changed from {_short(old)} to {_short(new)}"
    return f"{gap.keyword} changed"


_COMPARED = frozenset(
    "minLength maxLength minItems maxItems minProperties maxProperties minimum maximum "
    "exclusiveMinimum exclusiveMaximum multipleOf pattern format uniqueItems const".split()
)
_PHRASES = {
    "required": ("is now required", "is no longer required"),
    "type": ("{sent} is no longer accepted", "{sent} is newly accepted"),
    "value": ("the value {sent} is no longer accepted", "the value {sent} is newly accepted"),
    "enum": ("only listed values are accepted now", "more than the listed values is accepted now"),
    "allowed": ("is no longer allowed", "is newly allowed"),
    "additionalProperties": (
        "properties that are not named are refused now",
        "properties that are not named are accepted now",
    ),
}


def _words(gap: Gap) -> str:
    if gap.keyword == "type":
        return "a number with a fraction" if gap.sent == "fraction" else f"type {gap.sent}"
    return _json(gap.sent)


def _short(value: Any) -> str:
    return "none" if value is None else _json(value)


def _json(value: Any) -> str:
    found = text(value)
    return found if len(found) <= 80 else f"{found[:77]}..."


def _harmless(before: Side, after: Side) -> list[Change]:
    """Properties that came or went, in every object that both schemas describe."""
    found: dict[str, Change] = {}
    seen: set[str] = set()
    waiting: list[tuple[tuple[str, ...], Node, Node]] = [((), before.root, after.root)]
    while waiting:
        path, was, becomes = waiting.pop()
        old, new = _object(before, was), _object(after, becomes)
        if old is None or new is None or text([was, becomes]) in seen:
            continue
        seen.add(text([was, becomes]))
        for name in sorted(new.names ^ old.names):
            place = pointer(*path, name)
            said = "optional property added" if name in new.names else "property removed"
            found[place] = Change(place, said, None)
        for name in sorted(new.names & old.names):
            waiting.append(((*path, name), old.member(name)[0], new.member(name)[0]))
    return [found[place] for place in sorted(found)]


def _object(side: Side, node: Node) -> Shape | None:
    """The one shape its objects have; which of several shapes belong together is not known."""
    found = [shape for shape in side.shapes(node) if shape.kind == "object"]
    return found[0] if len(found) == 1 else None
