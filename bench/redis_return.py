"""How soon after Redis returns the first waiting event is in the log."""

import asyncio
import time

from bench.figure import Figure
from bench.outbox_to_log import fill
from bench.servers import part, percentile, servers, stored, wait_until


def run(scale: float = 1.0) -> list[Figure]:
    delays = []
    with servers() as (settings, redis), part(settings, "work", "relay,ingress"):
        asyncio.run(fill(settings, 10))
        wait_until(lambda: stored(settings) == 10)
        for outage in range(max(2, int(5 * scale))):
            redis.stop()
            asyncio.run(fill(settings, 10))
            time.sleep(3)  # the outage itself
            before = stored(settings)
            assert before == 10 * (outage + 1), "an event passed a Redis that was away"
            redis.start()
            back = time.perf_counter()
            delays.append(wait_until(lambda seen=before: stored(settings) > seen) - back)
            wait_until(lambda seen=before: stored(settings) == seen + 10)
    name = f"first event in the log after Redis returns, worst of {len(delays)}"
    return [Figure(name, percentile(delays, 1.0), "s", None, "", "2 s")]
