"""The formats of an answer, and which of them a client accepts."""

from collections.abc import Iterator, Mapping

from tristore.errors import NotAcceptable

# What a client gets that does not say stands first.
ROWS = {
    "json": "application/json",
    "ndjson": "application/x-ndjson",
    "csv": "text/csv",
    "arrow": "application/vnd.apache.arrow.stream",
    "parquet": "application/vnd.apache.parquet",
}


def chosen(accept: str | None, offered: Mapping[str, str] = ROWS) -> str:
    """The name of the format a client likes best; of equals the one offered first."""
    if not accept or not accept.strip():
        return next(iter(offered))
    ranges = list(_ranges(accept))
    liked = {name: _liking(media, ranges) for name, media in offered.items()}
    best = max(liked, key=lambda name: liked[name])
    if liked[best] <= 0:
        known = ", ".join(offered.values())
        raise NotAcceptable(f"none of the accepted formats can be made; accept one of {known}")
    return best


def _ranges(accept: str) -> Iterator[tuple[str, float]]:
    for part in accept.split(","):
        media, *parameters = (piece.strip().lower() for piece in part.split(";"))
        weights = [p[2:] for p in parameters if p.startswith("q=")]
        yield media, _weight(weights[0]) if weights else 1.0


def _weight(text: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        return 0.0
    return weight if 0 <= weight <= 1 else 0.0


def _liking(media: str, ranges: list[tuple[str, float]]) -> float:
    """By the most exact range that covers it, as RFC 9110 has it."""
    main = media.partition("/")[0]
    for wanted in (media, f"{main}/*", "*/*"):
        weights = [weight for given, weight in ranges if given == wanted]
        if weights:
            return max(weights)
    return 0.0
