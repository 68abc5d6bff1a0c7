"""`tristore meta`: records, found and looked at; what changes them stands in `meta_changes`."""

import json
from typing import Annotated, Any

import typer
from rich.table import Table

from tristore.cli import meta_bulk, meta_changes, meta_namespaces, meta_sync
from tristore.cli.client import Client
from tristore.cli.document import document
from tristore.cli.meta_place import Key, Namespace, record_path, show_record
from tristore.cli.options import AsJson, Cursor, DataDir, Limit, Token, Url
from tristore.cli.tables import cells, folding, show_page

app = typer.Typer(
    help="Records: get, put, patch, rm, restore, purge, history, search, bulk, namespaces, sync.",
    no_args_is_help=True,
)
app.command("put")(meta_changes.put)
app.command("patch")(meta_changes.patch)
app.command("rm")(meta_changes.remove)
app.command("restore")(meta_changes.restore)
app.command("purge")(meta_changes.purge)
app.command("bulk")(meta_bulk.bulk)
app.command("namespaces")(meta_namespaces.namespaces)
app.add_typer(meta_sync.app, name="sync")


@app.command("get")
def get(
    namespace: Namespace,
    key: Key,
    deleted: Annotated[bool, typer.Option("--deleted", help="Also if it is deleted.")] = False,
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Show one record."""
    client = Client.find(url, token, data_dir)
    wanted = {"includeDeleted": "true"} if deleted else {}
    show_record(client.get(record_path(namespace, key), **wanted), as_json)


@app.command("history")
def history(
    namespace: Namespace,
    key: Key,
    limit: Limit = 50,
    cursor: Cursor = None,
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Show the versions of a record, newest first: who changed what, and when."""
    path = record_path(namespace, key) + "/audit"
    page = Client.find(url, token, data_dir).get(path, limit=limit, cursor=cursor)
    if as_json:
        print(json.dumps(page))
        return
    table = folding("version", "at", "who", "what", "changed", "correlation id")
    for item in page["items"]:
        action = item["action"] + (f" from {item['restoredFrom']}" if item["restoredFrom"] else "")
        row = [item["version"], item["at"][:19], item["actor"], action]
        row += [", ".join(item["changed"]), item["correlationId"]]
        table.add_row(*cells(row))
    show_page(table, page)


@app.command("search")
def search(
    query: Annotated[
        str | None, typer.Argument(help="As people write it: owner:ops tag:raw metadata.n>10")
    ] = None,
    namespace: Annotated[
        list[str] | None, typer.Option("--namespace", "-n", help="Only there; may come twice.")
    ] = None,
    filter: Annotated[
        str | None, typer.Option(help="A filter tree: JSON, @file, or - for stdin.")
    ] = None,
    sort: Annotated[
        list[str] | None, typer.Option(help="A field, or field:desc; may come twice.")
    ] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    count: Annotated[bool, typer.Option("--count", help="Also say how many there are.")] = False,
    deleted: Annotated[bool, typer.Option("--deleted", help="Also deleted ones.")] = False,
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Find records."""
    body: dict[str, Any] = {"limit": limit, "count": count, "includeDeleted": deleted}
    optional = {"q": query, "namespace": namespace or None, "cursor": cursor}
    body |= {name: value for name, value in optional.items() if value is not None}
    if filter is not None:
        body["filter"] = document(filter, "filter")
    body["sort"] = [_sorted_by(text) for text in sort or ()]
    page = Client.find(url, token, data_dir).post("/metastore/v1/records/search", body)
    if as_json:
        print(json.dumps(page))
        return
    show_page(_found(page["items"]), page)
    if count:
        print(f"{page['count']} in all")


def _found(items: list[dict[str, Any]]) -> Table:
    table = folding("namespace", "key", "version", "owner", "tags", "updated", "metadata")
    for item in items:
        row = [item["namespace"], item["key"], item["version"], item["owner"]]
        row += [", ".join(item["tags"]), item["updatedAt"][:19]]
        row += [json.dumps(item["metadata"], ensure_ascii=False)[:200]]
        table.add_row(*cells(row))
    return table


def _sorted_by(text: str) -> dict[str, str]:
    name, _, direction = text.rpartition(":")
    if direction in ("asc", "desc") and name:
        return {"field": name, "direction": direction}
    return {"field": text, "direction": "asc"}
