"""Mounts over HTTP: which there are, and making one."""

from typing import Annotated, Any, Literal

import orjson
from fastapi import APIRouter, Body, Query, Request
from pydantic import Field
from starlette.responses import Response

from tristore.auth import requires
from tristore.errors import InvalidQuery, MountRefused, Unavailable
from tristore.filestore.model import Caller, Mount
from tristore.filestore.requests import PREFIX, Asking, Model, MountName, Page, filestore

router = APIRouter(prefix=f"{PREFIX}/mounts", tags=["filestore"])

READING = [requires("filestore:read")]
Text = Annotated[str, Field(min_length=1, max_length=1000)]


class _AnyMount(Model):
    name: MountName
    access: Literal["readWrite", "observe"] = "readWrite"
    audit_seconds: int | None = Field(None, ge=1, le=2**31 - 1)


class LocalMount(_AnyMount):
    """A folder that exists, empty or filled."""

    kind: Literal["local"]
    root: Text


class S3Mount(_AnyMount):
    """`credentials` names variables of the server's environment, `env:S3_B`; never a secret."""

    kind: Literal["s3"]
    bucket: Text
    prefix: Annotated[str, Field(max_length=1000)] = ""
    endpoint: Text | None = None
    region: Text | None = None
    credentials: Annotated[str, Field(pattern=r"^env:[A-Z][A-Z0-9_]{0,99}$")] | None = None


Spec = Annotated[LocalMount | S3Mount, Field(discriminator="kind")]


class MountsQuery(Page):
    """`cursor` is the name of the last mount the reader has."""

    cursor: MountName | None = None


@router.get("", dependencies=READING)
async def mounts(
    request: Request, asking: Asking, query: Annotated[MountsQuery, Query()]
) -> Response:
    """The mounts the token may see, by name, with what lies on each (`rollup`)."""
    found = sorted(await filestore(request).mounts(asking), key=lambda mount: mount.name)
    rest = [mount for mount in found if query.cursor is None or mount.name > query.cursor]
    page = rest[: query.limit]
    items = [await _shown(request, asking, mount) for mount in page]
    cursor = page[-1].name if len(rest) > len(page) else None
    return _json({"items": items, "nextCursor": cursor})


@router.post("", dependencies=[requires("filestore:admin")], status_code=201)
async def create_mount(request: Request, asking: Asking, spec: Annotated[Spec, Body()]) -> Response:
    """Makes a folder or a bucket a mount, once it is shown to keep what the filestore promises."""
    if not asking.sees(spec.name):
        raise InvalidQuery("the token is limited to other mounts; choose one of their names")
    given = spec.model_dump(by_alias=True, exclude_none=True)
    try:
        made = await filestore(request).create_mount(asking, given)
    except Unavailable as error:
        # Later on a store that is away comes back; one that was never seen may be mistyped.
        raise MountRefused(str(error)) from None
    return _json(await _shown(request, asking, made), 201)


@router.get("/{name}", dependencies=READING)
async def mount(request: Request, asking: Asking, name: MountName) -> Response:
    """One mount, with what lies on it."""
    found = await filestore(request).mount(asking, name)
    return _json(await _shown(request, asking, found))


async def _shown(request: Request, asking: Caller, mount: Mount) -> dict[str, Any]:
    store, principal = filestore(request), request.state.principal
    shown = mount.to_json()
    # Where it lies is for those who run it.
    if "filestore:admin" not in principal.scopes:
        shown = {name: value for name, value in shown.items() if name not in mount.config}
    root = await store.by_path(asking, mount.name, "")
    return {**shown, "rollup": (await store.rollup(root.id)).to_json()}


def _json(body: object, status: int = 200) -> Response:
    return Response(orjson.dumps(body), status, media_type="application/json")
