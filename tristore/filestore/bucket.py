"""The calls to an S3 bucket, each with an end in time and its errors in the platform's words."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import obstore
from obstore import exceptions
from obstore.store import S3Store

from tristore.config import S3Credentials
from tristore.errors import (
    ContentConflict,
    ContentGone,
    StorageFull,
    StorageRefused,
    TristoreError,
    Unavailable,
)
from tristore.filestore.content import Fingerprint
from tristore.filestore.endpoints import Endpoint

if TYPE_CHECKING:
    from obstore.store import S3Credential

T = TypeVar("T")

# Metadata of an object: which command wrote it, and what it wrote.
TOKEN = "tristore-token"
CHECKSUM = "tristore-sha256"
# The client follows redirects and cannot be told not to. All but the endpoint itself is therefore
# "reached" through a proxy whose name never resolves (RFC 6761).
_NOWHERE = "http://redirects-are-refused.invalid"
_RETRIES = 3
_STATUS = re.compile(r"status code: (\d{3})")
# How many times the usual wait a server may take over a large object.
PATIENCE = 12


class Place(NamedTuple):
    """Where a mount's objects lie."""

    endpoint: Endpoint
    region: str
    bucket: str
    prefix: str
    credentials: S3Credentials | None
    timeout_seconds: float


class Object(NamedTuple):
    path: str
    fingerprint: Fingerprint
    token: str | None
    checksum: str | None


class RangesIgnored(Unavailable):
    """The server sent the whole object where a part of it was asked for."""


class Bucket:
    def __init__(self, place: Place) -> None:
        self.store = _store(place, place.timeout_seconds)
        # For what takes a server as long as the object is large: to put parts together, to copy.
        self.patient = _store(place, place.timeout_seconds * PATIENCE)
        self.seconds = place.timeout_seconds

    async def head(self, path: str) -> Object | None:
        """None where there is no such object."""
        try:
            with refusals():
                found = await self._soon(
                    obstore.get_async(self.store, path, options={"head": True})
                )
        except ContentGone:
            return None
        return _object(path, found.meta, dict(found.attributes))

    async def put(
        self, path: str, data: bytes, attributes: dict[str, str], replaces: str | None
    ) -> Fingerprint:
        """Only where nothing stands (None), or the object that has this etag."""
        mode: obstore.PutMode = "create" if replaces is None else {"e_tag": f'"{replaces}"'}
        with refusals(writing=True):
            done = await self._soon(
                obstore.put_async(
                    self.store, path, data, attributes=attributes, mode=mode, use_multipart=False
                )
            )
        return Fingerprint(len(data), etag=plain(done["e_tag"]))

    async def get(
        self, path: str, start: int = 0, stop: int | None = None
    ) -> tuple[Fingerprint, int, AsyncIterator[bytes]]:
        """With the number of bytes that will come."""
        options: obstore.GetOptions = {}
        if stop is not None:
            options["range"] = (start, stop)
        elif start:
            options["range"] = {"offset": start}
        with refusals():
            found = await self._soon(obstore.get_async(self.store, path, options=options))
        begin, end = found.range
        return _looks(found.meta), end - begin, _pieces(found)

    async def copy(self, source: str, target: str) -> None:
        with refusals(writing=True):
            await self._soon(obstore.copy_async(self.patient, source, target), PATIENCE)

    async def delete(self, path: str) -> None:
        try:
            with refusals(writing=True):
                await self._soon(obstore.delete_async(self.store, path))
        except ContentGone:
            pass

    async def pages(
        self, prefix: str, after: str | None, size: int
    ) -> AsyncIterator[list[tuple[str, Fingerprint]]]:
        """In the order of keys. A key that ends with a slash comes without it, though there is
        no object of that name."""
        pages = obstore.list(self.store, prefix or None, offset=after, chunk_size=size)
        while True:
            with refusals():
                page = await self._soon(anext(pages, None))
            if page is None:
                return
            yield [(item["path"], _looks(item)) for item in page]

    async def children(self, path: str) -> tuple[list[str], list[tuple[str, Fingerprint]]]:
        """The directories and the objects that lie directly there."""
        with refusals():
            found = await self._soon(
                obstore.list_with_delimiter_async(self.store, path or None), PATIENCE
            )
        objects = [(item["path"], _looks(item)) for item in found["objects"]]
        return list(found["common_prefixes"]), objects

    async def _soon(self, call: Awaitable[T], times: int = 1) -> T:
        async with asyncio.timeout(self.seconds * times):
            return await call


def _store(place: Place, seconds: float) -> S3Store:
    within = timedelta(seconds=seconds)
    origin, credentials = place.endpoint.origin, place.credentials
    return S3Store(
        place.bucket,
        prefix=place.prefix or None,
        # Said twice, because the second would else be taken from the environment.
        endpoint=origin,
        aws_endpoint_url_s3=origin,
        region=place.region,
        virtual_hosted_style_request=False,
        disable_bulk_delete=True,
        skip_signature=credentials is None,
        credential_provider=None if credentials is None else _signer(credentials),
        client_options={
            "allow_http": place.endpoint.scheme == "http",
            "connect_timeout": timedelta(seconds=place.timeout_seconds / 2),
            "read_timeout": within,
            # Of a whole request, and with it of a whole download: the others end it earlier.
            "timeout": timedelta(days=1),
            "proxy_url": _NOWHERE,
            "proxy_excludes": place.endpoint.host,
        },
        retry_config={
            "max_retries": _RETRIES,
            "retry_timeout": timedelta(seconds=place.timeout_seconds / 2),
        },
    )


def _signer(known: S3Credentials) -> "Callable[[], S3Credential]":
    return lambda: {
        "access_key_id": known.access_key_id,
        "secret_access_key": known.secret_access_key,
        "token": known.session_token,
        "expires_at": None,
    }


@contextmanager
def refusals(*, writing: bool = False) -> Iterator[None]:
    try:
        yield
    except (exceptions.BaseError, FileNotFoundError, TimeoutError, ValueError) as error:
        raise _refusal(error, writing) from error


def _refusal(error: Exception, writing: bool) -> TristoreError:
    if isinstance(error, exceptions.AlreadyExistsError | exceptions.PreconditionError):
        return ContentConflict("another object stands at the path than expected; reconcile it")
    if isinstance(error, FileNotFoundError):
        return (
            StorageRefused("the store knows no such bucket or object; check the mount's bucket")
            if writing
            else ContentGone("the object is no longer in the bucket; reconcile the path")
        )
    if isinstance(error, exceptions.PermissionDeniedError | exceptions.UnauthenticatedError):
        return StorageRefused("the store refuses the mount's credentials; check what they allow")
    if isinstance(error, exceptions.InvalidPathError):
        return StorageRefused(
            "the bucket holds a key that is no path (an empty, '.' or '..' part); rename it"
        )
    # The client has no error of its own for these, and for a listing none at all.
    status = _STATUS.search(str(error))
    if status and status[1] in ("401", "403"):
        return StorageRefused("the store refuses the mount's credentials; check what they allow")
    if status and status[1] == "404":
        return StorageRefused("the store knows no such bucket; check the mount's bucket")
    if status and status[1] == "507":
        return StorageFull("the store has no room for this; free some and try again")
    if "non-partial response" in str(error):
        return RangesIgnored("the mount's S3 server cannot send parts of objects")
    return Unavailable("the mount's S3 server does not answer as it should; try again")


def _looks(meta: "obstore.ObjectMeta") -> Fingerprint:
    return Fingerprint(meta["size"], etag=plain(meta["e_tag"]))


def plain(etag: str | None) -> str | None:
    """Some servers quote it in one answer and not in another."""
    return etag.strip('"') if etag else None


def _object(path: str, meta: "obstore.ObjectMeta", attributes: dict[str, str]) -> Object:
    return Object(path, _looks(meta), attributes.get(TOKEN), attributes.get(CHECKSUM))


async def _pieces(found: "obstore.GetResult") -> AsyncIterator[bytes]:
    stream = found.stream(min_chunk_size=1024 * 1024)
    while True:
        with refusals():
            piece = await anext(stream, None)
        if piece is None:
            return
        yield bytes(piece)
