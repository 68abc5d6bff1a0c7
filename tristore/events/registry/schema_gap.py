"""A gap: a place where a reader may refuse what a writer may send."""

from dataclasses import dataclass, field, replace
from typing import Any

from tristore.events.registry.schema_side import text

# More are counted, but not shown one by one.
MAX_SHOWN = 50


class TooComplex(Exception):
    """The schemas are too intricate to be compared in reasonable time."""


@dataclass(frozen=True, slots=True)
class Gap:
    """`sent` is what the writer may send, `asked` what the reader asks; `probes` are values that
    may show it."""

    path: tuple[str | int, ...]
    keyword: str
    sent: Any
    asked: Any
    probes: list[Any] = field(compare=False)


def distinct(gaps: list[Gap]) -> list[Gap]:
    """Two shapes may meet the same gap; their probes go together. What will not be shown needs
    none."""
    found: dict[str, Gap] = {}
    for gap in gaps:
        key = text([gap.path, gap.keyword, gap.sent, gap.asked])
        if key in found:
            found[key] = replace(gap, probes=[*found[key].probes, *gap.probes])
        else:
            found[key] = gap
    shown, rest = list(found.values())[:MAX_SHOWN], list(found.values())[MAX_SHOWN:]
    return [*shown, *(replace(gap, probes=[]) for gap in rest)]
