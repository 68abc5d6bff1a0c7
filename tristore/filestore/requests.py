"""What a request to the filestore says of itself: who asks, and for which path of which mount."""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated
from urllib.parse import unquote_to_bytes

from fastapi import Depends, Path, Request
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel
from starlette.convertors import Convertor, register_url_convertor

from tristore.errors import InvalidPath, InvalidQuery, InvalidRequest
from tristore.filestore import paths
from tristore.filestore.model import Caller
from tristore.tokens import Principal

if TYPE_CHECKING:
    from tristore.filestore.store import Filestore

PREFIX = "/filestore/v1"
FILES = f"{PREFIX}/files/"
MAX_KEY = 200
_MOUNT = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
MountName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")]
PathText = Annotated[str, Field(max_length=paths.MAX_PATH_BYTES)]
NumberText = Annotated[int, Path(ge=1, lt=2**63)]


class Model(BaseModel):
    """Unknown fields are refused: a mistyped option would silently do something else."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid")


class Page(Model):
    limit: int = Field(100, ge=1, le=1000)
    # As long as the longest path, in base64.
    cursor: Annotated[str, Field(max_length=8000)] | None = None


class _Anything(Convertor[str]):
    """As `path`, and line breaks too: they must reach the check that refuses them."""

    regex = r"[\s\S]*"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("anything", _Anything())


def filestore(request: Request) -> "Filestore":
    found: Filestore = request.app.state.platform.filestore
    return found


async def caller(request: Request) -> Caller:
    principal: Principal = request.state.principal
    return Caller(
        principal=principal.name,
        token_id=principal.id,
        correlation_id=request.state.correlation_id,
        idempotency_key=_idempotency_key(request),
        mounts=principal.mounts,
    )


def _idempotency_key(request: Request) -> str | None:
    key = request.headers.get("idempotency-key")
    if key is not None and not (0 < len(key) <= MAX_KEY and key.isprintable()):
        raise InvalidRequest(f"an Idempotency-Key has 1 to {MAX_KEY} printable characters")
    return key


def wants_async(request: Request) -> bool:
    given = ",".join(request.headers.getlist("prefer")).lower()
    return any(part.strip() == "respond-async" for part in given.split(","))


@dataclass(frozen=True, slots=True)
class Target:
    mount: str
    path: str


async def _target(request: Request, mount: str, path: str) -> Target:
    """From the bytes of the request line, decoded once: what the router offers has lost what was
    not UTF-8, and where an encoded slash stood. Its parameters are named here for the docs."""
    del mount, path
    parts = [_text(part) for part in request.scope["raw_path"].split(b"/", 5)]
    if len(parts) != 6 or "/".join(parts[:4]) + "/" != FILES:
        raise InvalidPath("write the address of a file as /filestore/v1/files/<mount>/<path>")
    if not _MOUNT.fullmatch(parts[4]):
        raise InvalidQuery("the name of a mount has 1 to 63 of a-z, 0-9, - and _")
    return Target(parts[4], paths.check(parts[5]))


def _text(raw: bytes) -> str:
    try:
        return unquote_to_bytes(raw).decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidPath("the path is not valid UTF-8") from None


FileTarget = Annotated[Target, Depends(_target)]
Asking = Annotated[Caller, Depends(caller)]
