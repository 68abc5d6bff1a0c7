"""The platform over HTTP, for the SDK: problem documents become the errors they stand for."""

from typing import Any

import httpx
import orjson

from tristore import errors
from tristore.errors import InvalidEvent, TristoreError, Unavailable, Violation

_BUSY = {408, 425, 429}
_SLUG = "urn:tristore:"
_KINDS: dict[str, type[TristoreError]] = {
    "unauthenticated": errors.Unauthenticated,
    "forbidden": errors.Forbidden,
    "not-found": errors.NotFound,
    "id-conflict": errors.IdConflict,
    "epoch-changed": errors.EpochChanged,
    "too-large": errors.TooLarge,
}
# For answers that are no problem documents: something between us and the platform spoke.
_BY_STATUS: dict[int, type[TristoreError]] = {
    401: errors.Unauthenticated,
    403: errors.Forbidden,
    404: errors.NotFound,
    413: errors.TooLarge,
}


class Remote:
    def __init__(self, url: str, token: str | None, *, seconds: float = 10) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._client = httpx.AsyncClient(base_url=url, headers=headers, timeout=seconds)

    async def ask(self, method: str, path: str, **options: Any) -> Any:
        """The answer's JSON; a Transient error if trying again may help."""
        try:
            answer = await self._client.request(method, path, **options)
        except httpx.TransportError as error:
            reason = f"{type(error).__name__} {error}".strip()
            raise Unavailable(f"{self._client.base_url} is away: {reason}") from error
        if not answer.is_success:
            raise _refusal(answer)
        return orjson.loads(answer.content) if answer.content else None

    async def close(self) -> None:
        await self._client.aclose()


def _refusal(answer: httpx.Response) -> TristoreError:
    body = _document(answer)
    detail = str(body.get("detail") or f"{answer.url} answered {answer.status_code}")
    slug = str(body.get("type", "")).removeprefix(_SLUG)
    if answer.status_code >= 500 or answer.status_code in _BUSY:
        return Unavailable(detail)
    if slug == "invalid-event":
        listed = [Violation(e["path"], e["message"]) for e in body.get("errors", [])]
        return InvalidEvent("invalid", listed or [Violation("", detail)])
    if slug == "position-gone":
        return errors.PositionGone(body["earliest"])
    if slug == "position-ahead":
        return errors.PositionAhead(body["last"])
    kind = _KINDS.get(slug) or _BY_STATUS.get(answer.status_code, errors.InvalidRequest)
    return kind(detail)


def _document(answer: httpx.Response) -> dict[str, Any]:
    try:
        found = orjson.loads(answer.content)
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}
