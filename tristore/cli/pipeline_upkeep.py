"""`tristore pipeline close|compact|vacuum|backfill`: upkeep on demand, by the driver or here."""

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tristore import failpoints
from tristore.cli.fs_progress import counts_bar
from tristore.cli.options import AsJson, DataDir
from tristore.cli.pipeline_config import config_of, database_of, settings_of
from tristore.errors import Terminal, Unavailable

if TYPE_CHECKING:
    from tristore.pipeline.requests import Action

Dataset = Annotated[str | None, typer.Option("--dataset", help="Only this one.")]
Here = Annotated[
    bool, typer.Option("--here", help="In this process, with a Spark of its own; no driver needed.")
]
_POLL_SECONDS, _PATIENCE_SECONDS = 0.2, 60.0


def close(
    dataset: Dataset = None,
    partition: Annotated[
        str | None, typer.Option(help="This one, though its time has not passed yet.")
    ] = None,
    here: Here = False,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Close the partitions that have ended: sorted, compacted, told of."""
    if partition is not None and dataset is None:
        raise typer.BadParameter("--partition needs --dataset")
    given = {"dataset": dataset, "partition": partition}
    _do("close", given, here, data_dir, as_json)


def compact(
    dataset: Dataset = None, here: Here = False, data_dir: DataDir = None, as_json: AsJson = False
) -> None:
    """Merge the small files of every partition."""
    _do("compact", {"dataset": dataset}, here, data_dir, as_json)


def vacuum(
    dataset: Dataset = None,
    keep_hours: Annotated[
        int | None, typer.Option(min=1, help="Keep what versions of these hours name.")
    ] = None,
    here: Here = False,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Remove files that no version of the last hours names, and those of deleted datasets."""
    _do("vacuum", {"dataset": dataset, "keepHours": keep_hours}, here, data_dir, as_json)


def backfill(
    dataset: Dataset = None,
    from_sequence: Annotated[int | None, typer.Option(min=1)] = None,
    to_sequence: Annotated[int | None, typer.Option(min=1)] = None,
    since: Annotated[
        str | None, typer.Option("--from", help="Events at or after this time.")
    ] = None,
    until: Annotated[str | None, typer.Option("--to", help="Events before this time.")] = None,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Make the whole table anew from log and archive.")
    ] = False,
    here: Here = False,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Add to the log's tables what they lack of a range; what they have stays as it is."""
    bounds = {"fromSequence": from_sequence, "toSequence": to_sequence}
    times = {"from": moment(since, "--from"), "to": moment(until, "--to")}
    if rebuild and any([*bounds.values(), *times.values()]):
        raise typer.BadParameter("--rebuild takes no range")
    given = {"dataset": dataset, **bounds, **times, "rebuild": rebuild}
    _do("backfill", given, here, data_dir, as_json)


def moment(text: str | None, option: str) -> str | None:
    """As RFC 3339 with a zone; UTC where none is given."""
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(f"{option} is no time such as 2026-11-15T10:00:00Z") from None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).isoformat()


def _do(
    action: "Action", given: dict[str, Any], here: bool, data_dir: Path | None, as_json: bool
) -> None:
    arguments = {name: value for name, value in given.items() if value not in (None, False)}
    settings = settings_of(data_dir)
    with counts_bar(action, quiet=as_json) as look:
        if here:
            failpoints.arm(settings.failpoints)
            found = _do_here(action, arguments, config_of(settings), look)
        else:
            found = _ask(database_of(settings), action, arguments, look)
    print(json.dumps(found)) if as_json else _show(found)


def _do_here(
    action: str, arguments: dict[str, Any], config: Any, look: Callable[[dict[str, Any]], None]
) -> Any:
    from tristore.pipeline.actions import act
    from tristore.pipeline.session import make_session
    from tristore.pipeline.tools import Tools

    spark = make_session(config)
    try:
        return act(
            Tools(spark, config),
            action,
            arguments,
            lambda done, total: look({"progress": {"done": done, "total": total}}),
        )
    finally:
        spark.stop()


def _ask(
    database_url: str,
    action: "Action",
    arguments: dict[str, Any],
    look: Callable[[dict[str, Any]], None],
) -> Any:
    from tristore.pipeline import requests

    number = requests.ask(database_url, action, arguments)
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while (found := requests.state(database_url, number)).state in ("queued", "running"):
        look({"progress": found.progress})
        waiting = found.state == "queued" and time.monotonic() > deadline
        if waiting and requests.withdraw(database_url, number):
            raise Unavailable(
                "no pipeline took this up in a minute; start one with `tristore pipeline run`, "
                "or add --here"
            )
        time.sleep(_POLL_SECONDS)
    if found.state == "failed":
        raise Terminal(str(found.error))
    return found.result


def _show(found: dict[str, Any]) -> None:
    for name, value in found.items():
        listed = ", ".join(value) or "none" if isinstance(value, list) else str(value)
        print(f"{name:<24} {listed}")
