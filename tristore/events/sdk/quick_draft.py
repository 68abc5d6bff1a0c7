"""The quick way to drafts of many ordinary events; what is in any way unusual takes `Draft.of`.

A draft is checked on the bytes it will travel as. Reading those bytes back is most of that work;
here a few searches over the bytes of many events at once say that reading would find nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import orjson

from tristore.errors import InvalidEvent
from tristore.events.envelope import new_id, now_text
from tristore.events.plain_event import latest, plain_event
from tristore.events.registry.registry import Registry
from tristore.events.sdk.draft import Draft
from tristore.events.strictjson import MAX_DEPTH

# What fits in this is far below every limit of bytes, of keys and of their length.
_SMALL = 8 * 1024
_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_LONG = b"0" * 19


def quick_drafts(
    given: Sequence[Any], defaults: Mapping[str, str], registry: Registry
) -> Iterator[Draft | None]:
    """A draft for each, or None where only `Draft.of` can say."""
    stamped, end = {"occurredAt": now_text(), **defaults}, latest()
    drafts = [_draft(each, stamped, end, registry) for each in given]
    if _is_harmless(b"\n".join([draft.body for draft in drafts if draft])):
        yield from drafts
    else:
        yield from (draft if draft and _is_harmless(draft.body) else None for draft in drafts)


def _draft(
    given: Any, stamped: Mapping[str, str], end: datetime, registry: Registry
) -> Draft | None:
    if type(given) is not dict:
        return None
    fields = {**stamped, **given}
    if "id" not in fields:
        fields["id"] = new_id()
    try:
        body = orjson.dumps(fields, option=orjson.OPT_UTC_Z)
        event = plain_event(fields, end)
        # Only of a type without a schema it is certain that nobody looks into the payload: what
        # is there may be a date, say, and becomes a text on the way.
        if event is None or event.schema_version or registry.check(event) is not event:
            return None
    except (TypeError, InvalidEvent):
        return None
    if len(body) > _SMALL or body.count(b"{") + body.count(b"[") > MAX_DEPTH:
        return None
    return Draft(fields["id"], body)


def _is_harmless(bodies: bytes) -> bool:
    """No NUL, no integer that might be too large, and no null, which may have been NaN."""
    return (
        b"null" not in bodies
        and b"\\u0000" not in bodies
        and _LONG not in bodies.translate(_DIGITS)
    )
