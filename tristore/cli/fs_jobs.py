"""`tristore fs import|reconcile`: work the reconciler does, followed to its end."""

import json
from typing import Annotated, Any
from uuid import uuid4

import typer

from tristore.cli.fs_client import FsClient
from tristore.cli.fs_place import Named, Place
from tristore.cli.fs_progress import counts_bar
from tristore.cli.options import AsJson, DataDir, Token, Url

NoWait = Annotated[bool, typer.Option("--no-wait", help="Only ask for it.")]


def import_files(
    place: Named,
    checksums: Annotated[bool, typer.Option("--checksums", help="Read every file.")] = False,
    no_wait: NoWait = False,
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Track what lies on a mount already. Asked again it goes on where it was."""
    with FsClient.find(url, token, data_dir) as client:
        _run(client, "import", {**_at(place), "checksums": checksums}, no_wait, as_json)


def reconcile(
    place: Named,
    no_wait: NoWait = False,
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Compare a mount, or what is under a path, with the tree, and settle what differs."""
    with FsClient.find(url, token, data_dir) as client:
        _run(client, "reconcile", _at(place), no_wait, as_json)


def _at(place: str) -> dict[str, Any]:
    found = Place.parse(place)
    return {"mount": found.mount, "path": found.path}


def _run(client: FsClient, kind: str, body: dict[str, Any], no_wait: bool, as_json: bool) -> None:
    job = client.post(f"/{kind}", body, **{"Idempotency-Key": uuid4().hex})
    if not no_wait:
        with counts_bar(f"{kind} {body['mount']}:{body['path']}", quiet=as_json) as look:
            job = client.follow(f"/{kind}/{job['id']}", look)
    if as_json:
        print(json.dumps(job))
        return
    counted = ", ".join(f"{name} {count:,}" for name, count in job["progress"].items())
    print(f"{kind} {job['id']} {job['state']}" + (f": {counted}" if counted else ""))
