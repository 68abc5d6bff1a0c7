"""Plays the story and checks it: events, files and records, two parts killed, one number."""

import time

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from demo import counts, files, growth, partitions, publishers, records
from demo.client import Client
from demo.platform import Platform, running, wait_until
from demo.stream import LiveReader
from tristore.config import EventsSettings

GOOD, BAD = 997, 3
console = Console()


def main() -> None:
    started = time.monotonic()
    console.rule("Tristore: three stores on one event bus, on real servers")
    with running() as platform:
        console.print(f"up after {time.monotonic() - started:.1f} s, in {platform.folder}")
        story(platform)
    console.print(f"done in {time.monotonic() - started:.0f} s; everything stopped")


def story(platform: Platform) -> None:
    status = platform.status()
    assert status is not None
    client = Client(status)
    reader = LiveReader(status["url"], status["token"])
    reader.start()
    console.rule("the bus")
    publish(platform, status)
    wait_until(lambda: counts.postgres(status) == (GOOD, BAD), "the log")
    show_dead_letters(status)
    partitions.ingest(client)
    console.rule("the filestore")
    lake = platform.folder.parent / "lake"
    lake.mkdir()
    files.play(client, lake)
    console.rule("the metastore")
    records.play(client)
    console.rule("the timestore")
    partitions.show(client)
    console.rule("what everybody knows")
    wait_until(lambda: settled(platform, status, client, reader), "every reader of the log")
    reader.stop()
    growth.play(client)
    show_stream(reader)
    show_counts(platform, status, reader)


def settled(platform: Platform, status: dict[str, str], client: Client, reader: LiveReader) -> bool:
    """Nothing is on its way any more, and everybody has read to the end."""
    outbox = client.get("/admin/event-health")["outbox"]
    stored, _ = counts.postgres(status)
    done = outbox["pending"] + outbox["enqueued"] == 0
    return done and len(reader.seen) == stored == counts.delta(platform)


def publish(platform: Platform, status: dict[str, str]) -> None:
    publishers.by_transaction(status["databaseUrl"], 0, 300)
    console.print("300 events committed with their rows (outbox)")
    console.print(f"killed -9 the ingress worker (pid {platform.kill('ingress')})")
    publishers.by_http(status["url"], status["token"], 300, 400)
    console.print("400 events accepted over HTTP while it was dead")
    publishers.by_queue(status["redisUrl"], EventsSettings().queue, 700, 297)
    console.print("300 events by a plain BullMQ client, three of them bad")
    wait_until(lambda: counts.delta(platform) > 0, "the first Spark micro-batch")
    console.print(f"killed -9 the Spark driver (pid {platform.kill('pipeline')})")


def show_stream(reader: LiveReader) -> None:
    table = Table("sequence", "type", "id", title=f"live stream: {len(reader.seen)} events")
    for frame in [*reader.seen[:2], *reader.seen[-2:]]:
        table.add_row(str(frame["sequence"]), frame["event"]["type"], frame["event"]["id"])
    console.print(table)


def show_dead_letters(status: dict[str, str]) -> None:
    table = Table("id", "reason", "where", "what", title="dead letters")
    for row in counts.dead_letters(status):
        table.add_row(*(escape(str(cell)) for cell in row))
    console.print(table)


def show_counts(platform: Platform, status: dict[str, str], reader: LiveReader) -> None:
    bounds = "min(ingress_sequence), max(ingress_sequence)"
    sql = f"SELECT count(*), count(DISTINCT id), {bounds} FROM events"
    ((rows, ids, first, last),) = counts.duckdb(status, sql)
    found = {
        "Postgres, bus.workflow_events": counts.postgres(status)[0],
        "WebSocket, distinct sequences": len({frame["sequence"] for frame in reader.seen}),
        "Delta table, read by deltalake": counts.delta(platform),
        "DuckDB over HTTP, rows": rows,
        "DuckDB over HTTP, distinct ids": ids,
    }
    table = Table("asked of", "events", title=f"sequences {first} to {last}")
    for place, number in found.items():
        table.add_row(place, str(number))
    console.print(table)
    if set(found.values()) != {last} or first != 1:
        raise SystemExit("the counts differ: this is a bug")
    console.print(f"[bold]one number everywhere: {last} stored, {BAD} dead-lettered[/bold]")


main()
