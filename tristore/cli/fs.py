"""`tristore fs`: the filestore from the command line."""

import json
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.filesize import decimal
from rich.markup import escape

from tristore.cli.client import Client
from tristore.cli.fs_client import ROOT
from tristore.cli.fs_commands import cp, mkdir, mv, rm
from tristore.cli.fs_doctor import doctor
from tristore.cli.fs_files import cat, get, put
from tristore.cli.fs_jobs import import_files, reconcile
from tristore.cli.fs_tree import history, ls, stat, tree
from tristore.cli.options import AsJson, DataDir, Token, Url
from tristore.cli.tables import folding

app = typer.Typer(
    help="Files: mounts, a tree of what lies on them, and every change to it.",
    no_args_is_help=True,
)
Option = Annotated[str | None, typer.Option()]


@app.command("mounts")
def mounts(
    url: Url = None, token: Token = None, data_dir: DataDir = None, as_json: AsJson = False
) -> None:
    """List the mounts with what lies on each."""
    client = Client.find(url, token, data_dir)
    items = [item for page in client.pages(f"{ROOT}/mounts") for item in page["items"]]
    if as_json:
        print(json.dumps({"items": items}))
        return
    table = folding("name", "kind", "where", "access", "size", "files", "directories", "degraded")
    for item in items:
        where = item.get("root") or item.get("bucket") or ""
        rollup = item["rollup"]
        row = [item["name"], item["kind"], where, item["access"], decimal(rollup["sizeBytes"])]
        row += [rollup["files"], rollup["directories"], item["degraded"] or ""]
        table.add_row(*(escape(str(cell)) for cell in row))
    Console().print(table)


@app.command("mount")
def mount(
    name: Annotated[str, typer.Argument(help="1 to 63 of a-z, 0-9, - and _.")],
    root: Annotated[str | None, typer.Argument(help="A folder on the server.")] = None,
    bucket: Option = None,
    prefix: Option = None,
    endpoint: Option = None,
    region: Option = None,
    credentials: Annotated[
        str | None, typer.Option(help="env:NAME, as in env:S3_B; never the secret itself.")
    ] = None,
    observe: Annotated[bool, typer.Option("--observe", help="Never write to it.")] = False,
    audit_seconds: Annotated[int | None, typer.Option(min=1)] = None,
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Make a folder, or a bucket with --bucket, a mount."""
    if (root is None) == (bucket is None):
        raise typer.BadParameter("give a folder, or --bucket")
    s3 = {"bucket": bucket, "prefix": prefix, "endpoint": endpoint, "region": region}
    spec: dict[str, Any] = {"name": name, "kind": "local", "root": root}
    if bucket is not None:
        spec = {"name": name, "kind": "s3", **s3, "credentials": credentials}
    spec |= {"access": "observe" if observe else "readWrite", "auditSeconds": audit_seconds}
    given = {field: value for field, value in spec.items() if value is not None}
    made = Client.find(url, token, data_dir).post(f"{ROOT}/mounts", given)
    print(json.dumps(made) if as_json else f"{made['name']} is a mount now")


app.command("ls")(ls)
app.command("tree")(tree)
app.command("stat")(stat)
app.command("history")(history)
app.command("put")(put)
app.command("get")(get)
app.command("cat")(cat)
app.command("mv")(mv)
app.command("cp")(cp)
app.command("rm")(rm)
app.command("mkdir")(mkdir)
app.command("import")(import_files)
app.command("reconcile")(reconcile)
app.command("doctor")(doctor)
