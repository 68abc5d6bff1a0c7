"""`tristore meta put|patch|rm|restore|purge`: one record, changed."""

import json
from typing import Annotated, Any

import typer

from tristore.cli.client import Client
from tristore.cli.document import document
from tristore.cli.meta_place import (
    IfMatch,
    Key,
    Namespace,
    if_match,
    record_path,
    show_record,
)
from tristore.cli.options import AsJson, DataDir, Token, Url

Metadata = Annotated[str | None, typer.Option(help="JSON, @file, or - for stdin.")]
Tags = Annotated[list[str] | None, typer.Option("--tag", help="A tag; may come several times.")]
Owner = Annotated[str | None, typer.Option(help="Who is answerable for it.")]


def put(
    namespace: Namespace,
    key: Key,
    metadata: Metadata = None,
    tag: Tags = None,
    owner: Owner = None,
    version: IfMatch = None,
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Make a record, or replace all it holds; a deleted one comes back."""
    body = {
        "metadata": {} if metadata is None else document(metadata, "metadata"),
        "tags": tag or [],
        "owner": owner,
    }
    client = Client.find(url, token, data_dir)
    found = client.send("PUT", record_path(namespace, key), json=body, headers=if_match(version))
    show_record(found, as_json)


def patch(
    namespace: Namespace,
    key: Key,
    metadata: Annotated[
        str | None, typer.Option(help="Merge patch (null removes): JSON, @file, or -.")
    ] = None,
    add_tag: Annotated[list[str] | None, typer.Option(help="Add a tag; repeatable.")] = None,
    remove_tag: Annotated[list[str] | None, typer.Option(help="Take a tag away.")] = None,
    set_tag: Annotated[list[str] | None, typer.Option(help="These tags and no other.")] = None,
    owner: Owner = None,
    no_owner: Annotated[bool, typer.Option("--no-owner", help="Take the owner away.")] = False,
    version: IfMatch = None,
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Change some of what a record holds."""
    if owner is not None and no_owner:
        raise typer.BadParameter("give --owner or --no-owner, not both")
    body: dict[str, Any] = {}
    if metadata is not None:
        body["metadata"] = document(metadata, "metadata")
    tags = {"add": add_tag, "remove": remove_tag, "set": set_tag}
    if given := {name: value for name, value in tags.items() if value}:
        body["tags"] = given
    if owner is not None or no_owner:
        body["owner"] = owner
    client = Client.find(url, token, data_dir)
    found = client.send("PATCH", record_path(namespace, key), json=body, headers=if_match(version))
    show_record(found, as_json)


def remove(
    namespace: Namespace,
    key: Key,
    version: IfMatch = None,
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Mark a record as deleted; `restore` brings it back."""
    client = Client.find(url, token, data_dir)
    found = client.send("DELETE", record_path(namespace, key), headers=if_match(version))
    print(json.dumps(found) if as_json else f"deleted (version {found['version']})")


def restore(
    namespace: Namespace,
    key: Key,
    to: Annotated[int, typer.Argument(min=1, help="The version to bring back.")],
    version: IfMatch = None,
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Make a new version that holds what an earlier one held."""
    client = Client.find(url, token, data_dir)
    path = record_path(namespace, key) + "/restore"
    found = client.send("POST", path, json={"version": to}, headers=if_match(version))
    show_record(found, as_json)


def purge(
    namespace: Namespace,
    key: Key,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    version: IfMatch = None,
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Remove a record and the content of all its versions for good."""
    if not yes:
        typer.confirm(f"remove {namespace}/{key} and all it ever held, for good?", abort=True)
    client = Client.find(url, token, data_dir)
    client.send("DELETE", record_path(namespace, key) + "/purge", headers=if_match(version))
    done = {"namespace": namespace, "key": key, "purged": True}
    print(json.dumps(done) if as_json else f"purged {namespace}/{key}")
