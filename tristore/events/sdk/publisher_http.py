"""A publisher's door to `POST /v1/events`: sent means committed in the platform's outbox."""

from collections.abc import Sequence

from tristore.events.sdk.remote import Remote


class HttpDoor:
    def __init__(self, url: str, token: str | None) -> None:
        self._remote = Remote(url, token)

    async def send(self, bodies: Sequence[bytes]) -> None:
        listed = b"[" + b",".join(bodies) + b"]"
        headers = {"Content-Type": "application/json"}
        await self._remote.ask("POST", "/v1/events", content=listed, headers=headers)

    async def close(self) -> None:
        await self._remote.close()
