"""`tristore fs mv|cp|rm|mkdir`: changing the tree."""

import json
from typing import Annotated, Any

import typer

from tristore.cli.fs_client import FsClient
from tristore.cli.fs_place import Named, Place
from tristore.cli.fs_progress import counts_bar
from tristore.cli.options import AsJson, DataDir, Token, Url


def mv(
    source: Named,
    target: Named,
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Move a file or directory, also to another mount; never over something that is there."""
    with FsClient.find(url, token, data_dir) as client:
        _tell(_run(client, _transfer("move", source, target), as_json), "moved to", as_json)


def cp(
    source: Named,
    target: Named,
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Copy a file or directory, also to another mount; never over something that is there."""
    with FsClient.find(url, token, data_dir) as client:
        _tell(_run(client, _transfer("copy", source, target), as_json), "copied to", as_json)


def rm(
    place: Named,
    recursive: Annotated[bool, typer.Option("-r", help="A directory and all in it.")] = False,
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Delete a file or directory."""
    body = {**_at("delete", Place.parse(place)), "recursive": recursive}
    with FsClient.find(url, token, data_dir) as client:
        _tell(_run(client, body, as_json), "deleted", as_json)


def mkdir(
    place: Named,
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Make a directory, with those above it."""
    with FsClient.find(url, token, data_dir) as client:
        _tell(_run(client, _at("createDirectory", Place.parse(place)), as_json), "made", as_json)


def _at(command: str, place: Place) -> dict[str, Any]:
    return {"command": command, "mount": place.mount, "path": place.path}


def _transfer(command: str, source: str, target: str) -> dict[str, Any]:
    """A target that ends as a folder does takes the source's name."""
    start = Place.parse(source)
    end = Place.of_file(target, start.name)
    body = {**_at(command, start), "targetPath": end.path}
    return body if end.mount == start.mount else {**body, "targetMount": end.mount}


def _run(client: FsClient, body: dict[str, Any], quiet: bool) -> dict[str, Any]:
    with counts_bar(f"{body['command']} {body['mount']}:{body['path']}", quiet=quiet) as look:
        return client.command(body, look)


def _tell(done: dict[str, Any], verb: str, as_json: bool) -> None:
    if as_json:
        print(json.dumps(done))
        return
    node, count = done["node"], done["nodesAffected"]
    more = f" ({count:,} nodes)" if count > 1 else ""
    print(f"{verb} {node['mount']}:{node['path']}{more}")
