"""Which event types a reader wants: `a.b.c`, `a.*`, or everything."""

import re
from collections.abc import Sequence

from tristore.errors import InvalidQuery

MAX_PATTERNS = 50
_PATTERN = re.compile(r"\*|[a-z0-9][a-z0-9_.-]{0,198}(?:\.\*)?")


class TypeFilter:
    """Filters with the same patterns are equal. No pattern at all means every type."""

    __slots__ = ("_match", "patterns")

    def __init__(self, patterns: Sequence[str]) -> None:
        self.patterns = tuple(sorted(set(patterns)))
        if len(self.patterns) > MAX_PATTERNS:
            raise InvalidQuery(f"at most {MAX_PATTERNS} types can be asked for at once")
        for pattern in self.patterns:
            if not _PATTERN.fullmatch(pattern):
                raise InvalidQuery("a type reads service.entity.action, or service.* for many")
        regex = "|".join(map(_regex, self.patterns))
        self._match = re.compile(regex).fullmatch if regex else None

    def __call__(self, type: str) -> bool:
        return self._match is None or self._match(type) is not None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypeFilter) and self.patterns == other.patterns

    def __hash__(self) -> int:
        return hash(self.patterns)


def _regex(pattern: str) -> str:
    return re.escape(pattern[:-1]) + ".*" if pattern.endswith("*") else re.escape(pattern)
