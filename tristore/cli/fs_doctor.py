"""`tristore fs doctor`: adds the sums of every directory up anew and compares."""

import asyncio
import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tristore.cli.doctor import addresses
from tristore.cli.options import AsJson, DataDir

if TYPE_CHECKING:
    from tristore.filestore.doctor import Finding


def doctor(
    repair: Annotated[
        bool, typer.Option("--repair", help="Write the right sums; commands wait meanwhile.")
    ] = False,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Compare the sums of every directory with what lies under it. Exit 1 if some are wrong and
    were not repaired."""
    database_url, _, _ = addresses(data_dir)
    found = asyncio.run(_examined(database_url, repair))
    sound = repair or not any(found.values())
    if as_json:
        print(json.dumps({"ok": sound, "repaired": repair, "mounts": _listed(found)}))
    else:
        _tell(found, repair)
    if not sound:
        raise typer.Exit(1)


async def _examined(database_url: str, repair: bool) -> dict[str, "list[Finding]"]:
    # Imported here, so that no other command pays for the driver and the pool.
    from tristore.db.pool import make_pool
    from tristore.filestore import mounts
    from tristore.filestore.doctor import examine

    async with make_pool(database_url, name="doctor", max_size=1) as pool:
        async with pool.connection() as conn:
            every = await mounts.every(conn)
        return {mount.name: await examine(pool, mount, repair=repair) for mount in every}


def _listed(found: dict[str, "list[Finding]"]) -> list[dict[str, Any]]:
    return [
        {"mount": mount, "findings": [one.to_json() for one in findings]}
        for mount, findings in found.items()
    ]


def _tell(found: dict[str, "list[Finding]"], repaired: bool) -> None:
    for mount, findings in found.items():
        for one in findings:
            print(f"{mount}:{one.path}  kept {one.kept.to_json()}  counted {one.counted.to_json()}")
        if not findings:
            print(f"{mount}: every sum is right")
        else:
            step = "repaired" if repaired else "wrong; run it again with --repair"
            print(f"{mount}: {len(findings)} sums {step}")
