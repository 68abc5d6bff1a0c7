"""What a request announces of the file it carries, and the bytes themselves, counted."""

import base64
import binascii
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from starlette.datastructures import Headers

from tristore.errors import InvalidRequest, TooLarge
from tristore.events import strictjson


@dataclass(frozen=True, slots=True)
class Upload:
    """`most` is the largest size that is taken; None: whatever the mount has room for."""

    size: int | None
    checksum: str | None
    metadata: dict[str, Any] | None
    most: int | None

    @classmethod
    def announced(cls, headers: Headers, most: int | None) -> "Upload":
        length = headers.get("content-length")
        found = cls(
            size=None if length is None else int(length),  # the server refused what is no number
            checksum=_checksum(headers.get("x-checksum-sha256")),
            metadata=_metadata(headers.get("x-metadata")),
            most=most,
        )
        found._check_size(found.size or 0)
        return found

    async def counted(self, content: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        seen = 0
        async for piece in content:
            seen += len(piece)
            self._check_size(seen)
            yield piece

    def _check_size(self, size: int) -> None:
        if self.most is not None and size > self.most:
            raise TooLarge(f"files of more than {self.most} bytes are not taken here")


def _checksum(given: str | None) -> str | None:
    """`sha256:<hex>` of a digest in hex or base64."""
    if given is None:
        return None
    text = given.strip().removeprefix("sha256:")
    try:
        raw = bytes.fromhex(text) if len(text) == 64 else base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        raw = b""
    if len(raw) != 32:
        raise InvalidRequest("X-Checksum-SHA256 is a SHA-256 digest in hex or base64")
    return f"sha256:{raw.hex()}"


def _metadata(given: str | None) -> dict[str, Any] | None:
    if given is None:
        return None
    try:
        found = strictjson.loads(given.encode("latin-1"))
    except strictjson.StrictJsonError as error:
        raise InvalidRequest(f"X-Metadata is not understood: {error}") from None
    if not isinstance(found, dict):
        raise InvalidRequest("X-Metadata is a JSON object")
    return found
