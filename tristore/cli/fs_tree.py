"""`tristore fs ls|tree|stat|history`: looking at the tree."""

import json
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.filesize import decimal
from rich.markup import escape
from rich.tree import Tree

from tristore.cli.counting import counted
from tristore.cli.fs_client import FsClient
from tristore.cli.fs_place import Named, Place
from tristore.cli.options import AsJson, Cursor, DataDir, Limit, Token, Url
from tristore.cli.tables import cells, folding, of_one, show_page


def ls(
    place: Named,
    limit: Limit = 1000,
    cursor: Cursor = None,
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """List what lies directly in a directory; the root of a mount is MOUNT:"""
    with FsClient.find(url, token, data_dir) as client:
        node = client.node(Place.parse(place))
        page: dict[str, Any] = {"items": [node], "nextCursor": None}
        if node["kind"] == "directory":
            page = client.children(node, limit, cursor)
    if as_json:
        print(json.dumps(page))
        return
    table = folding("name", "size", "files", "version", "state", "changed")
    for item in page["items"]:
        table.add_row(*map(escape, _row(item)))
    show_page(table, page)


def tree(
    place: Named,
    depth: Annotated[int, typer.Option(min=1, max=50, help="Levels to show.")] = 3,
    most: Annotated[int, typer.Option(min=1, max=1000, help="Entries a directory.")] = 50,
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Draw a directory with sizes; the sum of each directory is of all that lies under it."""
    with FsClient.find(url, token, data_dir) as client:
        found = _grown(client, client.node(Place.parse(place)), depth, most)
    if as_json:
        print(json.dumps(found))
        return
    drawn = Tree(f"[bold]{escape(place)}[/]  {_size(found)}")
    _draw(drawn, found)
    Console().print(drawn)


def stat(
    place: Named,
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Show all that is known of a file or directory."""
    with FsClient.find(url, token, data_dir) as client:
        node = client.node(Place.parse(place))
    if as_json:
        print(json.dumps(node))
        return
    table = of_one()
    for name, value in node.items():
        shown = json.dumps(value) if isinstance(value, dict) else value
        table.add_row(name, "" if shown is None else escape(str(shown)))
    Console().print(table)


def history(
    place: Named,
    limit: Limit = 50,
    cursor: Cursor = None,
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Show every version a file or directory has had, newest first."""
    with FsClient.find(url, token, data_dir) as client:
        node = client.node(Place.parse(place))
        page = client.get(f"/nodes/{node['id']}/history", limit=limit, cursor=cursor)
    if as_json:
        print(json.dumps(page))
        return
    table = folding("version", "at", "by", "path", "size", "state", "checksum", "journal")
    for item in page["items"]:
        row = [item["version"], item["at"][:19], item["principal"], item["path"]]
        row += [decimal(item["sizeBytes"]), item["state"], item["checksum"], item["journalId"]]
        table.add_row(*cells(row))
    show_page(table, page)


def _row(node: dict[str, Any]) -> list[str]:
    name = node["path"].rpartition("/")[2] + ("/" if node["kind"] == "directory" else "")
    files = str(node["rollup"]["files"]) if "rollup" in node else ""
    state = "" if node["state"] == "active" else node["state"]
    return [name, _size(node), files, str(node["version"]), state, node["updatedAt"][:19]]


def _size(node: dict[str, Any]) -> str:
    if "rollup" in node:
        return f"{decimal(node['rollup']['sizeBytes'])}"
    return decimal(node["sizeBytes"])


def _grown(client: FsClient, node: dict[str, Any], depth: int, most: int) -> dict[str, Any]:
    """The node with its children, and theirs, as deep as asked."""
    if node["kind"] != "directory" or depth == 0:
        return node
    page = client.children(node, most)
    children = [_grown(client, child, depth - 1, most) for child in page["items"]]
    return {**node, "children": children, "more": page["nextCursor"] is not None}


def _draw(drawn: Tree, node: dict[str, Any]) -> None:
    for child in node.get("children", ()):
        name, size, files, _, state, _ = _row(child)
        within = f", {counted(int(files), 'file')}" if files else ""
        mark = f"  [yellow]{escape(state)}[/]" if state else ""
        _draw(drawn.add(f"{escape(name)}  [dim]{size}{within}[/]{mark}"), child)
    if node.get("more"):
        drawn.add("[dim]… more[/]")
