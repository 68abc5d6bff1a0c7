"""Regular expressions of schemas, read just far enough to weigh them and to write examples."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

MAX_LENGTH = 1000
_MAX_NESTING = 30
_COUNT = re.compile(r"\{(\d{1,9})(,(\d{0,9}))?\}")
_GROUP_HEAD = re.compile(r"\?(?:P?<\w+>|[a-zA-Z-]*:)")
_CLASSES = {"d": "0123456789", "w": "abcXYZ019_", "s": " \t", "D": "aB-", "W": "-. ", "S": "aB3-"}
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v"}
_PRINTABLE = "".join(map(chr, range(32, 127)))


class PatternUnread(ValueError):
    """The pattern uses something that is not read here."""


@dataclass(slots=True)
class Chars:
    """One character out of `options`; classes beyond ASCII cost the engine several states."""

    options: str
    states: int = 1


@dataclass(slots=True)
class Group:
    branches: list[list["Part"]] = field(default_factory=lambda: [[]])


@dataclass(slots=True)
class Repeat:
    part: "Part"
    low: int
    high: int | None


Part = Chars | Group | Repeat


def states(pattern: str) -> int:
    """About how many states the engine must follow for each byte of a value, at worst."""
    return _states(parse(pattern))


def samples(pattern: str) -> list[str]:
    """Strings that probably match, short ones first; the engine has the last word."""
    try:
        tree = parse(pattern)
    except PatternUnread:
        return []
    plain = [_sample(tree, turn) for turn in range(6)]
    found = [*plain, *(f"x{text}" for text in plain[:2]), *(f"{text}x" for text in plain[:2])]
    return list(dict.fromkeys(text for text in found if len(text) < 10_000))


def parse(pattern: str) -> Group:
    if len(pattern) > MAX_LENGTH:
        raise PatternUnread(f"is longer than {MAX_LENGTH} characters")
    open_groups, position = [Group()], 0
    while position < len(pattern):
        position = _step(pattern, position, open_groups)
    if len(open_groups) != 1:
        raise PatternUnread("has a group that does not end")
    return open_groups[0]


def _step(pattern: str, at: int, groups: list[Group]) -> int:
    char, current = pattern[at], groups[-1].branches[-1]
    if char == "(":
        if len(groups) > _MAX_NESTING:
            raise PatternUnread(f"nests groups deeper than {_MAX_NESTING}")
        groups.append(Group())
        head = _GROUP_HEAD.match(pattern, at + 1)
        if head is None and pattern.startswith("?", at + 1):
            raise PatternUnread("looks around or back, which the linear-time engine cannot")
        return head.end() if head else at + 1
    if char == ")":
        if len(groups) == 1:
            raise PatternUnread("ends a group that was not begun")
        done = groups.pop()
        groups[-1].branches[-1].append(done)
        return at + 1
    if char == "|":
        groups[-1].branches.append([])
        return at + 1
    if char in "^$":
        return at + 1
    if (repeat := _repeat(pattern, at)) and current:
        low, high, end = repeat
        current[-1] = Repeat(current[-1], low, high)
        return end + 1 if pattern.startswith("?", end) else end
    part, end = _atom(pattern, at)
    if part is not None:
        current.append(part)
    return end


def _repeat(pattern: str, at: int) -> tuple[int, int | None, int] | None:
    simple: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
    if pattern[at] in simple:
        low, high = simple[pattern[at]]
        return low, high, at + 1
    if count := _COUNT.match(pattern, at):
        low = int(count[1])
        bounded = low if count[2] is None else int(count[3]) if count[3] else None
        return low, bounded, count.end()
    return None


def _atom(pattern: str, at: int) -> tuple[Chars | None, int]:
    char = pattern[at]
    if char == "[":
        return _class(pattern, at + 1)
    if char == ".":
        return Chars("axZ0 -", 4), at + 1
    if char == "\\":
        return _escape(pattern, at + 1)
    return Chars(char), at + 1


def _escape(pattern: str, at: int) -> tuple[Chars | None, int]:
    if at >= len(pattern):
        raise PatternUnread("ends with a backslash")
    char = pattern[at]
    if char in "bB":
        return None, at + 1
    if char in "123456789k":
        raise PatternUnread("looks around or back, which the linear-time engine cannot")
    if char in "pP":
        end = pattern.find("}", at)
        return Chars("abXé" if char == "p" else "1- ", 8), max(end, at) + 1
    if char in "xu":
        width = 2 if char == "x" else 4
        digits = pattern[at + 1 : at + 1 + width]
        if re.fullmatch(f"[0-9a-fA-F]{{{width}}}", digits):
            return Chars(chr(int(digits, 16))), at + 1 + width
        raise PatternUnread("has an escape of a character that is not complete")
    if char in _CLASSES:
        return Chars(_CLASSES[char], 4), at + 1
    return Chars(_CONTROLS.get(char, char)), at + 1


def _class(pattern: str, at: int) -> tuple[Chars, int]:
    negated = pattern.startswith("^", at)
    at += negated
    members, weight, first = "", 1, True
    while at < len(pattern) and (first or pattern[at] != "]"):
        first = False
        part, at = _escape(pattern, at + 1) if pattern[at] == "\\" else (Chars(pattern[at]), at + 1)
        found = part or Chars("\b")
        if (
            len(found.options) == 1
            and pattern[at : at + 1] == "-"
            and pattern[at + 1 : at + 2] != "]"
        ):
            last, at = _range_end(pattern, at + 1)
            stop = min(ord(last), ord(found.options) + 300)
            found = Chars("".join(map(chr, range(ord(found.options), stop + 1))))
        members += found.options
        weight = max(weight, found.states, 1 if found.options.isascii() else 4)
    if negated:
        rest = "".join(c for c in _PRINTABLE if c not in members)
        return Chars(rest or "é", 4), at + 1
    return Chars(members or "a", weight), at + 1


def _range_end(pattern: str, at: int) -> tuple[str, int]:
    if at >= len(pattern):
        raise PatternUnread("has a character class that does not end")
    part, end = _escape(pattern, at + 1) if pattern[at] == "\\" else (Chars(pattern[at]), at + 1)
    return (part.options[-1] if part else "-"), end


def _states(part: Part) -> int:
    if isinstance(part, Chars):
        return part.states
    if isinstance(part, Repeat):
        return 1 + _states(part.part) * max(part.low, part.high or 1, 1)
    return 1 + sum(_states(inner) for branch in part.branches for inner in branch)


def _sample(part: Part, turn: int) -> str:
    return "".join(_pieces(part, turn))


def _pieces(part: Part, turn: int) -> Iterator[str]:
    if isinstance(part, Chars):
        yield part.options[turn % len(part.options)]
    elif isinstance(part, Repeat):
        most = part.low + turn if part.high is None else part.high
        # Only the outermost counts matter here; thousands of characters make no better example.
        for number in range(min(part.low + turn, most, 500)):
            yield from _pieces(part.part, turn + number)
    else:
        for inner in part.branches[turn % len(part.branches)]:
            yield from _pieces(inner, turn)
