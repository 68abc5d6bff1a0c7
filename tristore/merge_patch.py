"""JSON merge patches (RFC 7396), as both stores take them."""

from typing import Any


def merged(before: Any, patch: Any) -> Any:
    """Null removes, objects merge, all else replaces. Neither argument is changed."""
    if not isinstance(patch, dict):
        return patch
    found = dict(before) if isinstance(before, dict) else {}
    for name, value in patch.items():
        if value is None:
            found.pop(name, None)
        else:
            found[name] = merged(found.get(name), value)
    return found
