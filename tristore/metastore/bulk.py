"""Bulk calls: many upserts and deletes in one transaction, each with its own result."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tristore.db.pool import Connection
from tristore.errors import Forbidden, InvalidRecord, InvalidRequest, NotFound, Terminal, Violation
from tristore.metastore.applying import API, Applying, Settled
from tristore.metastore.changes import Author, Change, Delete, Put, no_record
from tristore.metastore.conditions import Condition
from tristore.metastore.content import FIELDS, check_fields, content_of
from tristore.metastore.names import key_violation, namespace_violation
from tristore.tokens import Principal

MODES = ("atomic", "perItem")
# Each namespace's rules are held by a lock, of which Postgres has a limited number.
MAX_NAMESPACES = 100
_SCOPES = {"upsert": "metastore:write", "delete": "metastore:delete"}
_FIELDS = {
    "upsert": FIELDS | {"op", "namespace", "key", "ifMatch"},
    "delete": frozenset(("op", "namespace", "key", "ifMatch")),
}


@dataclass(frozen=True, slots=True)
class Bulk:
    """Every item is a change, or what is wrong with it."""

    atomic: bool
    items: list[Change | Terminal]


def bulk_of(given: Any, principal: Principal, most: int) -> Bulk:
    found = check_fields(given, {"mode", "items"})
    mode, items = found.get("mode", "atomic"), found.get("items")
    if mode not in MODES:
        raise InvalidRecord([Violation("/mode", 'is "atomic" or "perItem"')])
    if not isinstance(items, list) or not 1 <= len(items) <= most:
        raise InvalidRecord([Violation("/items", f"must be a list of 1 to {most} items")])
    parsed = [_parsed(item, principal) for item in items]
    if len({item.address[0] for item in parsed if not isinstance(item, Terminal)}) > MAX_NAMESPACES:
        raise InvalidRequest(f"one call reaches at most {MAX_NAMESPACES} namespaces; send several")
    return Bulk(mode == "atomic", parsed)


async def run(
    conn: Connection, applying: Applying, author: Author, bulk: Bulk
) -> list[Settled | Terminal]:
    """Raises the first thing that is wrong if all or nothing is wanted."""
    _refuse(bulk, bulk.items)
    changes = [item for item in bulk.items if not isinstance(item, Terminal)]
    settled = iter(await applying.each(conn, author, changes, API))
    results = [item if isinstance(item, Terminal) else next(settled) for item in bulk.items]
    _refuse(bulk, results)
    return results


def _refuse(bulk: Bulk, results: Sequence[object]) -> None:
    if not bulk.atomic:
        return
    for index, result in enumerate(results):
        if isinstance(result, Terminal):
            raise _at(index, result)


def _at(index: int, refusal: Terminal) -> Terminal:
    """The refusal of an item as that of the whole call, with the item named."""
    if isinstance(refusal, InvalidRecord):
        return InvalidRecord(
            [Violation(f"/items/{index}{v.path}", v.message) for v in refusal.violations]
        )
    return type(refusal)(f"item {index}: {refusal}; nothing was written")


def _parsed(item: Any, principal: Principal) -> Change | Terminal:
    try:
        return _change(item, principal)
    except Terminal as refusal:
        return refusal


def _change(item: Any, principal: Principal) -> Change:
    op = item.get("op") if isinstance(item, dict) else None
    if not isinstance(op, str) or op not in _SCOPES:
        raise InvalidRecord([Violation("/op", 'is "upsert" or "delete"')])
    found = check_fields(item, _FIELDS[op])
    namespace, key = found.get("namespace"), found.get("key")
    violations = [namespace_violation(namespace, "/namespace"), key_violation(key, "/key")]
    if listed := [violation for violation in violations if violation]:
        raise InvalidRecord(listed)
    condition = _condition(found.get("ifMatch"))
    _authorise(op, str(namespace), principal)
    if op == "delete":
        return Delete(str(namespace), str(key), condition)
    return Put(str(namespace), str(key), content_of(found), condition)


def _authorise(op: str, namespace: str, principal: Principal) -> None:
    if _SCOPES[op] not in principal.scopes:
        raise Forbidden(f"the token lacks the scope {_SCOPES[op]}")
    if (own := principal.own_namespaces) is not None and namespace not in own:
        if op == "delete":
            raise no_record()
        raise NotFound("there is no such namespace, or this token may not see it")


def _condition(if_match: Any) -> Condition:
    if if_match is None:
        return Condition()
    if isinstance(if_match, bool) or not isinstance(if_match, int | str):
        raise InvalidRecord([Violation("/ifMatch", "is the version the record must have")])
    return Condition.of(str(if_match))
