"""Errors as answers: RFC 9457 problem documents that say what to do and leak nothing."""

import json
from typing import Any

import psycopg
from psycopg_pool import PoolTimeout
from starlette.responses import JSONResponse
from starlette.types import Scope

from tristore import errors

STATUS: dict[type[errors.TristoreError], tuple[int, str]] = {
    errors.InvalidRequest: (400, "Bad request"),
    errors.InvalidPath: (400, "Invalid path"),
    errors.Unauthenticated: (401, "Not authenticated"),
    errors.Forbidden: (403, "Not allowed"),
    errors.SqlForbidden: (403, "sql_forbidden"),
    errors.ReadOnly: (403, "Read only"),
    errors.ContentUnreadable: (403, "Content unreadable"),
    errors.NotFound: (404, "Not found"),
    errors.ContentGone: (404, "Content gone"),
    errors.NotAcceptable: (406, "Not acceptable"),
    errors.TookTooLong: (408, "Took too long"),
    errors.IdConflict: (409, "Conflict"),
    errors.SchemaConflict: (409, "Conflict"),
    errors.SwitchedOff: (409, "Switched off"),
    errors.IncompatibleSchema: (409, "Incompatible schema"),
    errors.AlreadySettled: (409, "Already settled"),
    errors.CursorStale: (409, "Cursor stale"),
    errors.PositionAhead: (409, "Position not reached"),
    errors.EpochChanged: (409, "Log restored"),
    errors.PathConflict: (409, "Path conflict"),
    errors.AlreadyExists: (409, "Already there"),
    errors.KeyConflict: (409, "Idempotency key in use"),
    errors.Busy: (409, "Busy"),
    errors.ChangedOutside: (409, "Changed outside"),
    errors.ContentConflict: (409, "Content conflict"),
    errors.StagingLost: (409, "Upload lost"),
    errors.StorageRefused: (409, "Storage refused"),
    errors.PositionGone: (410, "Position gone"),
    errors.VersionMismatch: (412, "Version mismatch"),
    errors.TooLarge: (413, "Too large"),
    errors.EncodedBody: (415, "Encoded body"),
    errors.UnsupportedFormat: (415, "Unsupported format"),
    errors.InvalidJson: (422, "Invalid JSON"),
    errors.InvalidEvent: (422, "Invalid event"),
    errors.InvalidSchema: (422, "Invalid schema"),
    errors.InvalidRecord: (422, "Invalid record"),
    errors.InvalidRows: (422, "Invalid rows"),
    errors.Refused: (422, "Refused"),
    errors.InvalidQuery: (422, "Invalid query"),
    errors.TooBroad: (422, "Too broad"),
    errors.ChecksumMismatch: (422, "Checksum mismatch"),
    errors.MountRefused: (422, "Mount refused"),
    errors.TooMany: (429, "Too many"),
    errors.ContentDamaged: (502, "Content damaged"),
    errors.Unavailable: (503, "Unavailable"),
    errors.TableDamaged: (503, "Table damaged"),
    errors.OutcomeUnknown: (503, "Outcome unknown"),
    errors.StorageFull: (507, "Storage full"),
}

_LISTING = (errors.InvalidEvent, errors.InvalidSchema, errors.InvalidRecord, errors.InvalidRows)


class Problem(JSONResponse):
    media_type = "application/problem+json"

    def render(self, content: Any) -> bytes:
        # In ASCII: a message may quote half a character, which has no UTF-8.
        return json.dumps(content).encode("ascii")


def problem(error: errors.TristoreError, scope: Scope) -> JSONResponse:
    status, title = STATUS.get(type(error), (500, "Internal error"))
    detail = str(error) if status != 500 else "the request could not be completed"
    body: dict[str, Any] = {"type": f"urn:tristore:{_slug(error)}", "title": title}
    body |= {"status": status, "detail": detail}
    if isinstance(error, _LISTING):
        body["errors"] = [v.as_json() for v in error.violations]
    if isinstance(error, errors.IncompatibleSchema):
        body["verdict"] = error.verdict
    if isinstance(error, errors.PositionGone):
        body["earliest"] = error.earliest
    if isinstance(error, errors.PositionAhead):
        body["last"] = error.last
    return answer(status, body, scope, retry=isinstance(error, errors.Transient))


def answer(status: int, body: dict[str, Any], scope: Scope, *, retry: bool = False) -> JSONResponse:
    body["requestId"] = scope.get("state", {}).get("request_id")
    headers = {}
    if status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="tristore"'
    if status == 503 or retry:
        headers["Retry-After"] = "1"
    return Problem(body, status, headers)


def as_tristore_error(error: Exception) -> errors.TristoreError:
    """What a driver's error means to a caller."""
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError | PoolTimeout):
        return errors.Unavailable("the database is away; try again")
    return errors.TristoreError()


def _slug(error: errors.TristoreError) -> str:
    name = type(error).__name__
    return "".join(f"-{c.lower()}" if c.isupper() else c for c in name).lstrip("-")
