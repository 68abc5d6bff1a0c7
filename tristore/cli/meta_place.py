"""What the commands of the metastore share: where a record is, and how one is shown."""

import json
from typing import Annotated, Any
from urllib.parse import quote

import typer
from rich.console import Console
from rich.markup import escape

from tristore.cli.tables import of_one

Namespace = Annotated[str, typer.Argument(help="The namespace.")]
Key = Annotated[str, typer.Argument(help="The key of the record.")]
IfMatch = Annotated[
    int | None, typer.Option("--if-match", min=1, help="Only if this is its version.")
]
BASE = "/metastore/v1"


def record_path(namespace: str, key: str) -> str:
    return f"{BASE}/records/{quote(namespace, safe='')}/{quote(key, safe='')}"


def if_match(version: int | None) -> dict[str, str]:
    return {} if version is None else {"If-Match": f'"{version}"'}


def show_record(record: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print(json.dumps(record))
        return
    table = of_one()
    for name, value in record.items():
        text = ", ".join(value) if name == "tags" else value
        if name == "metadata":
            text = json.dumps(value, indent=2, ensure_ascii=False)
        table.add_row(name, "" if text is None else escape(str(text)))
    Console().print(table)
