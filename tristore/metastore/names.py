"""Names of namespaces and keys of records: what none may be called, refused before rights are."""

import re

from tristore.errors import InvalidRecord, Violation

MAX_KEY = 1024
# An index entry of Postgres holds a third of a page.
MAX_KEY_BYTES = 2048
_NAMESPACE = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def namespace_violation(value: object, path: str) -> Violation | None:
    if isinstance(value, str) and _NAMESPACE.fullmatch(value):
        return None
    return Violation(
        path, "a namespace has 1 to 63 lower-case letters, digits, dashes or underscores"
    )


def key_violation(value: object, path: str) -> Violation | None:
    if not isinstance(value, str) or not 0 < len(value) <= MAX_KEY:
        return Violation(path, f"a key has 1 to {MAX_KEY} characters")
    if has_control(value):
        return Violation(path, "a key has no control characters")
    if len(value.encode()) > MAX_KEY_BYTES:
        return Violation(path, f"a key has at most {MAX_KEY_BYTES} bytes in UTF-8")
    return None


def check_namespace(value: object, path: str = "/namespace") -> str:
    if violation := namespace_violation(value, path):
        raise InvalidRecord([violation])
    return str(value)


def check_key(value: object, path: str = "/key") -> str:
    if violation := key_violation(value, path):
        raise InvalidRecord([violation])
    return str(value)


def has_control(text: str) -> bool:
    return _CONTROL.search(text) is not None
