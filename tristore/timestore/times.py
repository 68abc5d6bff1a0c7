"""Times as the API writes them: UTC, RFC 3339."""

from datetime import UTC, datetime


def as_text(value: datetime | None) -> str | None:
    return None if value is None else value.astimezone(UTC).isoformat().replace("+00:00", "Z")
