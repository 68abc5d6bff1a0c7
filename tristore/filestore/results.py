"""The node a command answered, as its journal entry keeps it for a repeated Idempotency-Key."""

from dataclasses import asdict
from datetime import datetime
from typing import Any

from tristore.filestore.model import Node

_TIMES = ("created_at", "updated_at")


def write(node: Node) -> dict[str, Any]:
    kept = asdict(node)
    return kept | {name: kept[name].isoformat() for name in _TIMES}


def read(kept: dict[str, Any] | None) -> Node:
    assert kept is not None, "a completed entry with a key keeps its answer"
    return Node(**{**kept, **{name: datetime.fromisoformat(kept[name]) for name in _TIMES}})
