"""Plain SVG: elements with everything escaped, and text that fits where it is put."""

import unicodedata
from collections.abc import Iterable
from xml.sax.saxutils import escape, quoteattr

_KEPT = "\u200c\u200d"  # what joins letters and emoji
_GONE = "\ufffd"
# Of an ordinary sans-serif letter, as a share of the font's size; generous, since fonts differ.
_LETTER, _WIDE_LETTER = 0.58, 1.05


def element(name: str, *inside: str, **attributes: object) -> str:
    """`inside` is SVG already; attributes are values: `text_anchor` is written `text-anchor`."""
    given = "".join(
        f" {key.rstrip('_').replace('_', '-')}={quoteattr(_value(value))}"
        for key, value in attributes.items()
        if value is not None
    )
    content = "".join(inside)
    return f"<{name}{given}>{content}</{name}>" if content else f"<{name}{given}/>"


def text(words: str, x: float, y: float, **attributes: object) -> str:
    return element("text", escaped(words), x=x, y=y, **attributes)


def tooltip(words: str) -> str:
    return element("title", escaped(words))


def escaped(words: str) -> str:
    return escape(clean(words))


def clean(words: str) -> str:
    """Without what XML cannot hold or what would turn the direction of the text around it."""
    return "".join(
        _GONE if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Cn") and c not in _KEPT else c
        for c in words
    )


def width(words: str, font: float) -> float:
    return font * sum(map(_letter, words))


def fitted(words: str, room: float, font: float) -> str:
    """Cut in the middle where it is too long: both ends of a path tell it from its neighbours."""
    words = clean(words)
    if width(words, font) <= room:
        return words
    left, right = 0, len(words)
    used = width("…", font)
    while left < right:
        from_end = left > len(words) - right
        letter = words[right - 1] if from_end else words[left]
        used += width(letter, font)
        if used > room:
            break
        left, right = (left, right - 1) if from_end else (left + 1, right)
    return f"{words[:left]}…{words[right:]}"


def path(points: Iterable[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _letter(letter: str) -> float:
    if unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0
    wide = unicodedata.east_asian_width(letter) in "WF"
    return _WIDE_LETTER if wide else _LETTER


def _value(value: object) -> str:
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)
