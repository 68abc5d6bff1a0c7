"""The metastore's part: records that appear by themselves, follow a move, and come back."""

from typing import Any

from rich.console import Console
from rich.table import Table

from demo.client import Client
from demo.files import FILES, node
from demo.platform import wait_until

RECORDS = "/metastore/v1/records/filestore"
console = Console()


def play(client: Client) -> None:
    path = "curated/day-1/reading-7.csv"
    key = node(client, path)["id"]
    wait_until(lambda: _synced(client, key, path), "the record of a file")
    client.patch(f"{RECORDS}/{key}", {"tags": {"add": ["gold"]}, "owner": "ops"})
    console.print(f"{path} has a record; tagged gold, owned by ops")

    target = "published/reading-7.csv"
    move = {"command": "move", "mount": "lake", "path": path, "targetPath": target}
    client.post("/filestore/v1/commands", move)
    wait_until(lambda: _synced(client, key, target), "the record to follow the move")
    client.delete(f"{FILES}/{target}")
    wait_until(lambda: _deleted(client, key), "the record to be deleted with its file")
    back = client.post(f"{RECORDS}/{key}/restore", {"version": _version_with_tag(client, key)})
    console.print(f"moved: the record followed; deleted, and restored with {back['tags']}")
    _show(client)


def _synced(client: Client, key: str, path: str) -> bool:
    found = _find(client, {"field": "key", "op": "eq", "value": key})
    return bool(found) and found[0]["metadata"]["filestore"]["path"] == path


def _deleted(client: Client, key: str) -> bool:
    return not _find(client, {"field": "key", "op": "eq", "value": key})


def _version_with_tag(client: Client, key: str) -> int:
    audit = client.get(f"{RECORDS}/{key}/audit")["items"]
    return int(next(a["version"] for a in audit if a["action"] == "update"))


def _find(client: Client, wanted: dict[str, Any]) -> list[dict[str, Any]]:
    body = {"namespace": "filestore", "filter": wanted}
    found: list[dict[str, Any]] = client.post("/metastore/v1/records/search", body)["items"]
    return found


def _show(client: Client) -> None:
    query = {"namespace": "filestore", "q": "path:curated/* metadata.filestore.sizeBytes>5KB"}
    found = client.post("/metastore/v1/records/search", {**query, "limit": 3, "count": True})
    table = Table("record", "path", "state", title=f"{query['q']}: {found['count']} records")
    for record in found["items"]:
        own = record["metadata"]["filestore"]
        table.add_row(record["key"], own["path"], own["state"])
    console.print(table)
