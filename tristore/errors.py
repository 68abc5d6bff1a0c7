"""Every error the platform raises on purpose.

TristoreError
├── Transient                  try again later; nothing is wrong with the request
│   ├── Unavailable            a server (Postgres, Redis) is away
│   ├── BufferFull             a publisher holds as many unsent events as it may
│   ├── Unsent                 a publisher ends or flushes and could not send everything
│   ├── OutcomeUnknown         a commit may or may not have happened; safe to retry by id
│   ├── Busy                   another command works on the path; says which
│   ├── ChangedOutside         content was changed behind the filestore's back; being settled
│   └── StorageFull            the mount has no room
└── Terminal                   trying the same again gives the same answer
    ├── InvalidEvent           an event breaks the envelope or its schema; lists every violation
    ├── InvalidSchema          a schema is malformed or dangerous; lists every reason
    ├── IncompatibleSchema     a schema would break publishers or readers of the one before
    ├── SchemaConflict         a type or version belongs to another schema
    ├── IdConflict             the event id is taken by a different body
    ├── Unauthenticated        no valid token
    ├── Forbidden              the token lacks the scope
    ├── NotFound
    ├── InvalidRequest         a parameter is malformed
    ├── InvalidQuery           a filter, path or cursor of a list means nothing
    ├── TooBroad               a query would take too long; narrow it
    ├── TookTooLong            a query ran longer than it may and was stopped; narrow it
    ├── SqlForbidden           a statement would do more than read the datasets
    ├── NotAcceptable          no format that the client accepts can be made
    ├── TableDamaged           files of a table are gone or changed; it must be restored
    ├── CursorStale            a page cursor belongs to an earlier history of the log
    ├── AlreadySettled         a dead letter has been replayed or discarded before
    ├── TooLarge               a body is larger than the route takes
    ├── TooMany                more at once than one token may hold; close or wait
    ├── InvalidJson            a body is not JSON that every reader understands alike
    ├── EncodedBody            a body is compressed; send it plain
    ├── UnsupportedFormat      a body is of a kind the route does not take; says which it does
    ├── InvalidRows            rows do not fit their dataset; lists them
    ├── PositionGone           the asked position is older than what is kept
    ├── PositionAhead          the asked position has not been reached
    ├── EpochChanged           a cursor belongs to a history of the log that is no more
    ├── CheckpointMismatch     a pipeline checkpoint does not belong to this log or table
    ├── InvalidPath            a path no mount may hold
    ├── PathConflict           something stands at the path, or it is of another kind
    ├── KeyConflict            an Idempotency-Key was used for another request
    ├── VersionMismatch        the thing has another version than the caller knows
    ├── ChecksumMismatch       content does not have the checksum or size that was announced
    ├── ReadOnly               the mount is only observed
    ├── ContentConflict        what stands at a path is not what the command expected
    ├── ContentGone            the content of a path is no longer there
    ├── ContentUnreadable      what stands at a path is no regular file or may not be read
    ├── ContentDamaged         the bytes on a mount are not those that were stored
    ├── StagingLost            content that waited to be published is gone; send it again
    ├── StorageRefused         the store does not let the platform write; its owner must
    ├── MountRefused           a folder or bucket cannot be a mount; says why
    ├── InvalidRecord          a record breaks the rules of its namespace; lists every violation
    ├── Refused                a hook does not want a change
    ├── AlreadyExists          something of that name is there
    ├── SwitchedOff            a part of the platform is off or paused; says how to switch it on
    └── StartRefused           a server cannot be started safely; says what to do
"""

from dataclasses import dataclass


class TristoreError(Exception):
    pass


class Transient(TristoreError):
    pass


class Unavailable(Transient):
    pass


class BufferFull(Transient):
    """`taken` is how many events of a `publish_many` were taken in before there was no room."""

    taken = 0


class Unsent(Transient):
    """`count` events are neither on the bus nor refused to a caller."""

    def __init__(self, count: int, message: str) -> None:
        self.count = count
        super().__init__(message)


class OutcomeUnknown(Transient):
    pass


class Busy(Transient):
    pass


class ChangedOutside(Transient):
    pass


class StorageFull(Transient):
    pass


class Terminal(TristoreError):
    pass


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken rule: a JSON pointer into the event, and what is wrong there."""

    path: str
    message: str

    def as_json(self) -> dict[str, str]:
        return {"path": self.path, "message": self.message}


class InvalidEvent(Terminal):
    """`reason` is the dead-letter reason; `violations` is never empty."""

    def __init__(self, reason: str, violations: list[Violation]) -> None:
        self.reason = reason
        self.violations = violations
        listed = "; ".join(f"{v.path or '/'}: {v.message}" for v in violations)
        super().__init__(f"{reason}: {listed}")


class InvalidSchema(Terminal):
    """`violations` is never empty."""

    def __init__(self, violations: list[Violation]) -> None:
        self.violations = violations
        listed = "; ".join(f"{v.path or '/'}: {v.message}" for v in violations)
        super().__init__(f"the schema is refused: {listed}")


class IncompatibleSchema(Terminal):
    """`verdict` names each change, what it breaks and a payload that shows it."""

    def __init__(self, message: str, verdict: dict[str, object]) -> None:
        self.verdict = verdict
        super().__init__(message)


class SchemaConflict(Terminal):
    pass


class IdConflict(Terminal):
    pass


class Unauthenticated(Terminal):
    pass


class Forbidden(Terminal):
    pass


class NotFound(Terminal):
    pass


class InvalidRequest(Terminal):
    pass


class InvalidQuery(Terminal):
    pass


class TooBroad(Terminal):
    pass


class TookTooLong(Terminal):
    pass


class SqlForbidden(Terminal):
    pass


class NotAcceptable(Terminal):
    pass


class TableDamaged(Terminal):
    pass


class CursorStale(Terminal):
    pass


class AlreadySettled(Terminal):
    pass


class TooLarge(Terminal):
    pass


class TooMany(Terminal):
    pass


class InvalidJson(Terminal):
    pass


class EncodedBody(Terminal):
    pass


class UnsupportedFormat(Terminal):
    pass


class InvalidRows(Terminal):
    """`violations` is never empty; their paths lead to the rows, counted from 0."""

    def __init__(self, violations: list[Violation]) -> None:
        self.violations = violations
        listed = "; ".join(f"{v.path or '/'}: {v.message}" for v in violations[:5])
        super().__init__(f"the rows are refused, all of them: {listed}")


class PositionGone(Terminal):
    def __init__(self, earliest: int) -> None:
        self.earliest = earliest
        super().__init__(f"that position is no longer kept; the earliest is {earliest}")


class PositionAhead(Terminal):
    def __init__(self, last: int) -> None:
        self.last = last
        super().__init__(f"that position has not been reached; the last is {last}")


class EpochChanged(Terminal):
    pass


class CheckpointMismatch(Terminal):
    pass


class InvalidPath(Terminal):
    pass


class PathConflict(Terminal):
    pass


class KeyConflict(Terminal):
    pass


class VersionMismatch(Terminal):
    pass


class ChecksumMismatch(Terminal):
    pass


class ReadOnly(Terminal):
    pass


class ContentConflict(Terminal):
    pass


class ContentGone(Terminal):
    pass


class ContentUnreadable(Terminal):
    pass


class ContentDamaged(Terminal):
    pass


class StagingLost(Terminal):
    pass


class StorageRefused(Terminal):
    pass


class MountRefused(Terminal):
    pass


class InvalidRecord(Terminal):
    """`violations` is never empty; their paths lead into the request."""

    def __init__(self, violations: list[Violation]) -> None:
        self.violations = violations
        listed = "; ".join(f"{v.path or '/'}: {v.message}" for v in violations[:20])
        super().__init__(f"the record is refused: {listed}")


class Refused(Terminal):
    pass


class AlreadyExists(Terminal):
    pass


class SwitchedOff(Terminal):
    pass


class StartRefused(Terminal):
    pass
