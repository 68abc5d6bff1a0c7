"""The filestore's part: files written, moved, deleted, and changed behind its back."""

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.tree import Tree

from demo.client import Client
from demo.platform import wait_until

FILES = "/filestore/v1/files/lake"
NODES = "/filestore/v1/nodes"
console = Console()


def play(client: Client, folder: Path) -> None:
    _fill(folder)
    client.post("/filestore/v1/mounts", {"name": "lake", "kind": "local", "root": str(folder)})
    _import(client)
    _commands(client)
    _behind_its_back(client, folder)
    _show_tree(client)
    _show_feed(client)


def node(client: Client, path: str) -> dict[str, Any]:
    found: dict[str, Any] = client.get(f"{NODES}/by-path", mount="lake", path=path)
    return found


def _fill(folder: Path) -> None:
    """What lay there before anybody tracked it."""
    for number in range(120):
        file = folder / f"history/2025-{number % 12 + 1:02}/part-{number}.csv"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"sensor,celsius\n" * (number + 1))


def _import(client: Client) -> None:
    job = client.post("/filestore/v1/import", {"mount": "lake"})
    wait_until(lambda: _ended(client, job["id"]), "the import")
    done = client.get(f"/filestore/v1/import/{job['id']}")
    console.print(f"imported what lay there: {done['progress']['imported']} nodes")


def _ended(client: Client, job_id: Any) -> bool:
    return client.get(f"/filestore/v1/import/{job_id}")["state"] in ("completed", "failed")


def _commands(client: Client) -> None:
    for number in range(20):
        client.put(f"{FILES}/landing/reading-{number}.csv", b"7,21.5\n" * 100 * (number + 1))
    move = {"command": "move", "mount": "lake", "path": "landing", "targetPath": "curated/day-1"}
    moved = client.post("/filestore/v1/commands", move)
    client.delete(f"{FILES}/curated/day-1/reading-19.csv")
    console.print(
        f"20 files put, their folder moved (journal entry {moved['journalId']}), one file deleted"
    )


def _behind_its_back(client: Client, folder: Path) -> None:
    day = folder / "curated/day-1"
    (day / "reading-0.csv").write_bytes(b"corrected by hand\n")
    (day / "reading-1.csv").unlink()
    (day / "notes.txt").write_bytes(b"a stranger was here\n")
    size = len(b"corrected by hand\n")
    wait_until(lambda: node(client, "curated/day-1/reading-0.csv")["sizeBytes"] == size, "drift")
    missing = "curated/day-1/reading-1.csv"
    wait_until(lambda: node(client, missing)["state"] == "missing", "a missing file to be noticed")
    wait_until(lambda: _tracked(client, "notes.txt"), "a new file to be noticed")
    console.print("changed, removed and added one file behind its back: all three noticed")


def _tracked(client: Client, name: str) -> bool:
    children = client.get(f"{NODES}/{node(client, 'curated/day-1')['id']}/children")
    return any(child["path"].endswith(name) for child in children["items"])


def _show_tree(client: Client) -> None:
    root = Tree("lake")
    _branch(client, root, node(client, ""), depth=2)
    console.print(root)


def _branch(client: Client, tree: Tree, above: dict[str, Any], depth: int) -> None:
    for child in client.get(f"{NODES}/{above['id']}/children", limit=4)["items"]:
        name = child["path"].rpartition("/")[2]
        if child["kind"] == "file":
            state = "" if child["state"] == "active" else f"  {child['state']}"
            tree.add(f"{name}  {child['sizeBytes']:,} bytes{state}")
            continue
        sums = child["rollup"]
        branch = tree.add(f"{name}/  {sums['sizeBytes']:,} bytes in {sums['files']} files")
        if depth > 1:
            _branch(client, branch, child, depth - 1)


def _show_feed(client: Client) -> None:
    entries = client.get("/filestore/v1/journal", after=0, limit=1000)["items"]
    table = Table("entry", "command", "path", "state", "nodes", title="the end of the journal")
    for entry in entries[-5:]:
        cells = (entry["id"], entry["command"], entry["path"], entry["state"])
        table.add_row(*map(str, cells), str(entry["nodesAffected"]))
    console.print(table)
