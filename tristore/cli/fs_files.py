"""`tristore fs put|get|cat`: content, streamed both ways and compared with its checksum."""

import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO
from uuid import uuid4

import typer

from tristore.cli.client import read_answer
from tristore.cli.fs_client import FsClient
from tristore.cli.fs_place import Named, Place
from tristore.cli.fs_progress import bytes_bar
from tristore.cli.options import AsJson, DataDir, Token, Url
from tristore.errors import Terminal

if TYPE_CHECKING:
    import httpx

_PIECE = 1024 * 1024
Advance = Callable[[int], None]


def put(
    source: Annotated[str, typer.Argument(help="A file, a folder with -r, or - for stdin.")],
    target: Named,
    recursive: Annotated[bool, typer.Option("-r", help="A folder and all in it.")] = False,
    if_match: Annotated[int | None, typer.Option(help="Only over this version.")] = None,
    new: Annotated[bool, typer.Option("--new", help="Only where nothing is yet.")] = False,
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Store a file. A target that ends with : or / takes the file's own name."""
    headers = {"If-Match": f'"{if_match}"'} if if_match is not None else {}
    headers |= {"If-None-Match": "*"} if new else {}
    with FsClient.find(url, token, data_dir) as client:
        stored = [
            _put_one(client, file, place, headers, as_json)
            for file, place in _pairs(source, target, recursive)
        ]
    if as_json:
        print(json.dumps({"items": stored} if recursive else stored[0]))
        return
    for item in stored:
        node = item["node"]
        print(f"{node['mount']}:{node['path']}  version {node['version']}  {node['checksum']}")


def get(
    source: Named,
    target: Annotated[Path | None, typer.Argument(help="A file or folder; default: here.")] = None,
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Fetch a file. It gets its name only when it is whole and its checksum is right."""
    place = Place.parse(source)
    wanted = target or Path(".")
    wanted = wanted / place.name if wanted.is_dir() else wanted
    part = wanted.with_name(f".{wanted.name}.{uuid4().hex[:8]}.part")
    with FsClient.find(url, token, data_dir) as client:
        try:
            with _created(part) as file:
                told = _fetch(client, place, file, as_json)
            os.replace(part, wanted)
        finally:
            part.unlink(missing_ok=True)
    told["file"] = str(wanted)
    print(json.dumps(told) if as_json else f"{wanted}  {told['sizeBytes']:,} bytes")


def cat(
    source: Named,
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = None,
) -> None:
    """Print a file."""
    with FsClient.find(url, token, data_dir) as client:
        _fetch(client, Place.parse(source), sys.stdout.buffer, quiet=True)
    sys.stdout.buffer.flush()


def _pairs(source: str, target: str, recursive: bool) -> Iterator[tuple[Path | None, Place]]:
    """Which file goes where; None is stdin."""
    if source == "-":
        if target.endswith((":", "/")):
            raise typer.BadParameter("what comes from stdin needs a name: MOUNT:PATH")
        yield None, Place.parse(target)
        return
    found = Path(source)
    if not found.is_dir():
        yield found, Place.of_file(target, found.name)
        return
    if not recursive:
        raise typer.BadParameter(f"{source} is a folder; give -r to store all in it")
    top = Place.of_file(target, found.resolve().name)
    for file in sorted(path for path in found.rglob("*") if path.is_file()):
        yield file, _below(top, file.relative_to(found))


def _below(top: Place, relative: Path) -> Place:
    for name in relative.parts:
        top = top.child(name)
    return top


def _put_one(
    client: FsClient, file: Path | None, place: Place, headers: dict[str, str], quiet: bool
) -> dict[str, Any]:
    with _opened(file) as (content, size):
        digest = hashlib.sha256()
        given = {**headers, "Idempotency-Key": uuid4().hex}
        if size is not None:
            given["Content-Length"] = str(size)
        with bytes_bar(str(place), size, quiet=quiet) as advance:
            sent = _pieces(content, digest, advance)
            answer: dict[str, Any] = read_answer(
                client.http.put(place.url, content=sent, headers=given)
            )
    if answer["node"]["checksum"] != f"sha256:{digest.hexdigest()}":
        raise Terminal(f"{place} was stored with another checksum than was sent; put it again")
    return answer


def _pieces(content: BinaryIO, digest: "hashlib._Hash", advance: Advance) -> Iterator[bytes]:
    while piece := content.read(_PIECE):
        digest.update(piece)
        yield piece
        advance(len(piece))


@contextmanager
def _opened(file: Path | None) -> Iterator[tuple[BinaryIO, int | None]]:
    if file is None:
        yield sys.stdin.buffer, None
        return
    try:
        content = open(file, "rb")
    except OSError as error:
        raise Terminal(f"{file} cannot be read: {error.strerror}") from None
    with content:
        yield content, os.fstat(content.fileno()).st_size


@contextmanager
def _created(file: Path) -> Iterator[BinaryIO]:
    try:
        made = open(file, "xb")
    except OSError as error:
        raise Terminal(f"{file.parent} cannot be written to: {error.strerror}") from None
    with made:
        yield made
        made.flush()
        os.fsync(made.fileno())


def _fetch(client: FsClient, place: Place, file: BinaryIO, quiet: bool) -> dict[str, Any]:
    import httpx

    digest, size = hashlib.sha256(), 0
    with client.http.stream("GET", place.url) as answer:
        if not answer.is_success:
            answer.read()
            read_answer(answer)
        total = int(answer.headers["Content-Length"])
        with bytes_bar(str(place), total, quiet=quiet) as advance:
            try:
                for piece in answer.iter_raw(_PIECE):
                    digest.update(piece)
                    file.write(piece)
                    size += len(piece)
                    advance(len(piece))
            except httpx.RemoteProtocolError:
                raise Terminal(_CUT.format(place=place, size=size, total=total)) from None
        _check(place, answer, digest.hexdigest())
    return {"sizeBytes": size, "checksum": f"sha256:{digest.hexdigest()}"}


_CUT = (
    "{place} was cut after {size} of {total} bytes: the platform went away, or the file is "
    "damaged on its mount; `tristore fs stat` says which"
)


def _check(place: Place, answer: "httpx.Response", found: str) -> None:
    expected = answer.headers.get("X-Checksum-SHA256")
    if expected not in (None, found):
        raise Terminal(f"{place} arrived with another checksum than it has; get it again")
