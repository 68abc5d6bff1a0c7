"""How old an event is when it is in the Delta table, while 500 a second arrive."""

import threading
import time
from pathlib import Path

import psycopg

from bench.figure import Figure
from bench.pipeline_throughput import append_page
from bench.servers import part, percentile, servers, wait_until
from tristore.config import Settings
from tristore.timestore import progress
from tristore.timestore.place import tables_place

RATE, PAGE = 500, 25
SECONDS = 60


def run(scale: float = 1.0) -> list[Figure]:
    count = int(RATE * SECONDS * scale) // PAGE * PAGE
    with servers() as (settings, _):
        with part(settings, "pipeline", "run"):
            arrive(settings, 0, 5 * RATE)
            wait_until(lambda: through(settings) == 5 * RATE, 240)
            late = lateness(settings, 5 * RATE, 5 * RATE + count)
    name = f"from the log to the Delta table at {RATE} events/s, p95"
    return [Figure(name, percentile(late, 0.95), "s", None, "", "5 s")]


def lateness(settings: Settings, after: int, last: int) -> list[float]:
    """Seconds from the commit of each event to the first look at the table that shows it."""
    written: dict[int, float] = {}
    writer = threading.Thread(target=lambda: written.update(arrive(settings, after, last)))
    writer.start()
    seen, reached = [], after
    while reached < last:
        reached = through(settings)
        seen.append((reached, time.perf_counter()))
        time.sleep(0.05)
    writer.join()
    return [
        next(at for reached, at in seen if reached >= number) - told
        for number, told in written.items()
    ]


def arrive(settings: Settings, after: int, last: int) -> dict[int, float]:
    """Commits at a steady rate; tells when each event was committed."""
    told, begun = {}, time.perf_counter()
    with psycopg.connect(str(settings.database_url)) as conn:
        for start in range(after, last, PAGE):
            append_page(conn, start, start + PAGE)
            conn.commit()
            told |= dict.fromkeys(range(start + 1, start + PAGE + 1), time.perf_counter())
            time.sleep(max(0, begun + (start + PAGE - after) / RATE - time.perf_counter()))
    return told


def through(settings: Settings) -> int:
    if not Path(settings.tables_root()).exists():
        return 0
    return int(progress.read(tables_place(settings), "events")["throughSequence"])
