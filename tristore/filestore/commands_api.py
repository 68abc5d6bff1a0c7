"""Commands over HTTP: the changes to the tree that carry no content."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, Request
from pydantic import Field
from starlette.responses import Response

from tristore.auth import requires
from tristore.filestore.direct import Direct
from tristore.filestore.files_api import answered, expected_version
from tristore.filestore.model import Caller, Outcome
from tristore.filestore.requests import (
    PREFIX,
    Asking,
    Model,
    MountName,
    PathText,
    Target,
    filestore,
    wants_async,
)

router = APIRouter(prefix=PREFIX, tags=["filestore"], route_class=Direct)


class _OnPath(Model):
    mount: MountName
    path: PathText


class CreateDirectory(_OnPath):
    command: Literal["createDirectory"]


class Move(_OnPath):
    """Within a mount, or to `targetMount`; never over something that is there."""

    command: Literal["move"]
    target_path: PathText
    target_mount: MountName | None = None


class Copy(_OnPath):
    command: Literal["copy"]
    target_path: PathText
    target_mount: MountName | None = None


class Delete(_OnPath):
    command: Literal["delete"]
    recursive: bool = False


class UpdateMetadata(_OnPath):
    """`metadata` is a merge patch (RFC 7396): null removes a field."""

    command: Literal["updateMetadata"]
    metadata: dict[str, Any]


Command = Annotated[
    CreateDirectory | Move | Copy | Delete | UpdateMetadata, Field(discriminator="command")
]


@router.post("/commands", dependencies=[requires("filestore:write")])
async def command(request: Request, asking: Asking, given: Annotated[Command, Body()]) -> Response:
    """Carries out one command and answers the node it leaves and its journal entry. Takes
    `If-Match: "<version>"` and `Idempotency-Key`. With `Prefer: respond-async`, move, copy and
    delete answer 202 at once; `GET /filestore/v1/journal/{id}` shows how far they are."""
    target = Target(given.mount, given.path)
    version = await expected_version(request, asking, target)
    return answered(await _Run(request, asking, version).carry_out(given))


class _Run:
    def __init__(self, request: Request, asking: Caller, version: int | None) -> None:
        self._store = filestore(request)
        self._asking = asking
        self._version = version
        self._background = wants_async(request)

    async def carry_out(self, given: Command) -> Outcome:
        store, at = self._store, (self._asking, given.mount, given.path)
        match given:
            case CreateDirectory():
                return await store.create_directory(*at, if_match=self._version)
            case UpdateMetadata():
                return await store.update_metadata(*at, given.metadata, if_match=self._version)
            case Delete():
                return await store.delete(
                    *at,
                    if_match=self._version,
                    recursive=given.recursive,
                    background=self._background,
                )
            case Move() | Copy():
                return await self._transfer(given)

    async def _transfer(self, given: Move | Copy) -> Outcome:
        carry_out = self._store.move if isinstance(given, Move) else self._store.copy
        return await carry_out(
            self._asking,
            given.mount,
            given.path,
            given.target_path,
            given.target_mount,
            if_match=self._version,
            background=self._background,
        )
