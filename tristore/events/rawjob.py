"""A job exactly as it stands in Redis."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RawJob:
    """`data` is what the publisher wrote, unparsed; `stalled` counts the workers that died
    holding the job."""

    id: str
    name: str
    data: bytes
    timestamp_ms: int
    stalled: int

    @classmethod
    def of(cls, job_id: str, fields: Mapping[str, str]) -> "RawJob":
        """From the job's hash, read with surrogates for bytes that are no UTF-8."""
        return cls(
            id=job_id,
            name=fields.get("name", ""),
            data=fields.get("data", "").encode("utf-8", "surrogateescape"),
            timestamp_ms=_number(fields.get("timestamp")),
            stalled=_number(fields.get("stc")),
        )


def _number(text: str | None) -> int:
    """A foreign client may have left anything there."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 15 else 0
