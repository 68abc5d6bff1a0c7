"""The one-line search syntax for people, read into the same tree as the JSON filter.

owner:ops tag:raw metadata.size>10MB path:/landing/* -tag:tmp "two words" (a OR b)
"""

import re

from tristore.errors import InvalidQuery
from tristore.metastore import filters, terms
from tristore.metastore.fields import SYSTEM
from tristore.metastore.filters import And, Node, Not, Or

MAX_CHARACTERS = 2000
_SPACE = re.compile(r"\s*")
_TERM = re.compile(
    r"""(?P<field>[A-Za-z]\w*(?:\.[^\s.,:;*$?@&|!<>=~()\[\]{}"'`\\]+|\["(?:[^"\\]|\\.)*"\])*)
    (?P<op>>=|<=|!=|[:=<>~])""",
    re.VERBOSE,
)
_VALUE = re.compile(r'"(?P<quoted>(?:[^"\\]|\\["\\])*)"|(?P<bare>[^\s()"]+)')
_AFTER = re.compile(r"[\s()]|$")


def parse(text: str) -> Node:
    if len(text) > MAX_CHARACTERS:
        raise InvalidQuery(f"q: at most {MAX_CHARACTERS} characters")
    return _Reading(text).whole()


class _Reading:
    def __init__(self, text: str) -> None:
        self._text = text
        self._place = 0
        self._depth = 0

    def whole(self) -> Node:
        if not self._text.strip():
            return filters.EVERYTHING
        tree = self._either()
        if self._place < len(self._text):
            raise self._error("there is no bracket to close here")
        try:
            return filters.check_size(tree)
        except InvalidQuery as error:
            raise InvalidQuery(f"q: {error}") from None

    def _either(self) -> Node:
        parts = [self._all()]
        while self._word("OR"):
            parts.append(self._all())
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def _all(self) -> Node:
        parts: list[Node] = []
        self._skip_space()
        while not self._at_end() and not self._sees("OR"):
            if not self._word("AND"):
                parts.append(self._one())
            self._skip_space()
        if not parts:
            raise self._error("something to look for is missing")
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def _one(self) -> Node:
        denied = False
        while self._taken("-") or self._word("NOT"):
            denied = not denied
            self._skip_space()
        found = self._bracket() if self._taken("(") else self._term()
        return Not(found) if denied else found

    def _bracket(self) -> Node:
        self._depth += 1
        if self._depth > filters.MAX_DEPTH:
            raise self._error(f"brackets nest at most {filters.MAX_DEPTH} deep")
        found = self._either()
        if not self._taken(")"):
            raise self._error("a bracket is not closed")
        self._depth -= 1
        return found

    def _term(self) -> Node:
        term = _TERM.match(self._text, self._place)
        start = self._place
        if term is None:
            value, quoted = self._value()
            if not quoted and "*" in value:
                raise self._error("a * needs a field, as in key:abc*", start)
            return filters.leaf(SYSTEM["text"], "matches", value, "q")
        self._place = term.end()
        value, quoted = self._value()
        try:
            return terms.read(term["field"], term["op"], value, quoted=quoted)
        except InvalidQuery as error:
            raise self._error(str(error), start) from None

    def _value(self) -> tuple[str, bool]:
        found = _VALUE.match(self._text, self._place)
        if found is None:
            raise self._error("a value is missing, or a quote is not closed")
        if not _AFTER.match(self._text, found.end()):
            raise self._error("a value ends with a space or a bracket", found.end())
        self._place = found.end()
        if found["bare"] is not None:
            return found["bare"], False
        return re.sub(r"\\(.)", r"\1", found["quoted"]), True

    def _sees(self, word: str) -> bool:
        end = self._place + len(word)
        return self._text.startswith(word, self._place) and bool(_AFTER.match(self._text, end))

    def _word(self, word: str) -> bool:
        return self._sees(word) and self._taken(word)

    def _taken(self, sign: str) -> bool:
        if not self._text.startswith(sign, self._place):
            return False
        self._place += len(sign)
        return True

    def _at_end(self) -> bool:
        return self._place >= len(self._text) or self._text[self._place] == ")"

    def _skip_space(self) -> None:
        found = _SPACE.match(self._text, self._place)
        self._place = found.end() if found else self._place

    def _error(self, message: str, place: int | None = None) -> InvalidQuery:
        column = (self._place if place is None else place) + 1
        return InvalidQuery(f"q, column {column}: {message}")
