"""A Node program on the bus, with the bullmq package and no code of ours."""

import asyncio
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any
from uuid import uuid4

from bullmq import Queue

from tests.support.database import dead_letters, rows
from tests.support.waiting import until
from tristore.config import Settings

EXAMPLE = Path(__file__).parents[2] / "examples" / "node"


async def test_the_node_example_publishes_on_the_same_wire(bus: Settings, tmp_path: Path) -> None:
    """Where there is no Node, a plain BullMQ client sends the jobs the example sends, so that
    the wire it relies on is held to what the documentation says."""
    if shutil.which("node") and shutil.which("npm"):
        ids = await asyncio.to_thread(run_example, bus, tmp_path)
    else:
        ids = await send_same_jobs(bus)

    async def stored() -> list[dict[str, Any]]:
        found = rows(
            str(bus.database_url), "SELECT * FROM bus.workflow_events ORDER BY ingress_sequence"
        )
        return found if len(found) >= len(ids) else []

    found = await until(stored)
    assert dead_letters(str(bus.database_url)) == []
    assert {row["id"] for row in found} == set(ids)
    by_id = {row["id"]: row for row in found}
    one = by_id[ids[0]]
    assert (one["type"], one["source"]) == ("example.order.placed", "node.example")
    assert (one["payload"], one["correlation_id"]) == ({"order": 7}, "run-7")
    assert [by_id[name]["payload"]["line"] for name in ids[1:]] == [1, 2, 3]


def run_example(settings: Settings, folder: Path) -> list[str]:
    for name in ("package.json", "publish.mjs"):
        shutil.copy(EXAMPLE / name, folder)
    run(folder, "npm", "install", "--no-audit", "--no-fund", "--no-package-lock")
    address = {
        "TRISTORE_REDIS_URL": str(settings.redis_url),
        "TRISTORE_EVENTS__QUEUE": settings.events.queue,
    }
    return run(folder, "node", "publish.mjs", **address).split()


def run(folder: Path, *argv: str, **environment: str) -> str:
    ended = subprocess.run(
        argv,
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


async def send_same_jobs(settings: Settings) -> list[str]:
    one = sample("example.order.placed", {"order": 7}) | {"correlationId": "run-7"}
    many = [sample("example.order_line.placed", {"order": 7, "line": n}) for n in (1, 2, 3)]
    queue = Queue(settings.events.queue, {"connection": settings.redis_url})
    await queue.add("event", one, {"removeOnComplete": True})
    await queue.add("events", {"events": many}, {"removeOnComplete": True})
    await queue.close()
    return [event["id"] for event in (one, *many)]


def sample(type: str, payload: dict[str, Any]) -> dict[str, Any]:
    return {"id": str(uuid4()), "type": type, "source": "node.example", "payload": payload}


def test_the_example_asks_for_what_it_imports() -> None:
    package = json.loads((EXAMPLE / "package.json").read_text("utf-8"))
    program = (EXAMPLE / "publish.mjs").read_text("utf-8")
    assert set(package["dependencies"]) == {"bullmq", "ioredis"}
    assert all(f'from "{name}"' in program for name in package["dependencies"])
