"""A publisher's door to BullMQ: many events in one job, as durable as that Redis."""

from collections.abc import Sequence
from uuid import uuid4

from tristore.events.queue import EventQueue


class QueueDoor:
    def __init__(self, redis_url: str, queue: str) -> None:
        self._queue = EventQueue(redis_url, queue)

    async def send(self, bodies: Sequence[bytes]) -> None:
        """A new job id at every try: BullMQ would swallow a second job under an old one, and a
        try that timed out may have carried fewer events. The log knows events by their own ids."""
        await self._queue.add_events(bodies, job_id=uuid4().hex)

    async def close(self) -> None:
        await self._queue.close()
