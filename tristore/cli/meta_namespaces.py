"""`tristore meta namespaces`: the namespaces, their rules, and what does not fit them."""

import json
from typing import Annotated, Any
from urllib.parse import quote

import typer
from rich.console import Console
from rich.markup import escape

from tristore.cli.client import Client
from tristore.cli.document import document
from tristore.cli.meta_place import BASE
from tristore.cli.options import AsJson, DataDir, Token, Url
from tristore.cli.tables import folding

_PATH = f"{BASE}/namespaces"


def namespaces(
    name: Annotated[str | None, typer.Argument(help="Show this one.")] = None,
    rules: Annotated[
        str | None,
        typer.Option(
            "--set",
            help="All its rules: JSON, @file, or - (schema, allowedTags, requireOwner, "
            "keyPattern, indexes, textFields).",
        ),
    ] = None,
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """List the namespaces, show one, or set its rules."""
    if rules is not None and name is None:
        raise typer.BadParameter("name the namespace whose rules these are")
    client = Client.find(url, token, data_dir)
    if name is None:
        _list([item for page in client.pages(_PATH) for item in page["items"]], as_json)
        return
    path = f"{_PATH}/{quote(name, safe='')}"
    if rules is None:
        found = client.get(path)
        print(json.dumps(found, indent=None if as_json else 2, ensure_ascii=as_json))
        return
    _changed(client.send("PUT", path, json=document(rules, "set")), as_json)


def _list(items: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        print(json.dumps({"items": items, "nextCursor": None}))
        return
    table = folding("name", "schema", "allowed tags", "owner", "key pattern", "version", "updated")
    for item in items:
        tags = item["allowedTags"]
        row = [item["name"], "yes" if item["schema"] else "", "" if tags is None else len(tags)]
        row += ["required" if item["requireOwner"] else "", item["keyPattern"] or ""]
        table.add_row(*(escape(str(c)) for c in [*row, item["version"], item["updatedAt"][:19]]))
    Console().print(table)


def _changed(answer: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print(json.dumps(answer))
        return
    found = answer["violations"]
    print(f"{answer['namespace']['name']}: version {answer['namespace']['version']}")
    more = " at least" if found["truncated"] else ""
    print(f"{found['count']}{more} of {found['scanned']} records do not fit")
    for item in found["items"]:
        errors = "; ".join(f"{e['path']} {e['message']}" for e in item["errors"])
        print(f"  {item['key']}: {errors}")
