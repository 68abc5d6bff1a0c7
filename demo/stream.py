"""A live reader that reconnects where it was, as a dashboard would."""

import json
import threading
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect


class LiveReader(threading.Thread):
    """Collects every event frame; `seen` is in the order of arrival."""

    def __init__(self, url: str, token: str) -> None:
        super().__init__(daemon=True)
        self._address = url.replace("http", "ws") + "/ws"
        self._headers = {"Authorization": f"Bearer {token}"}
        self._ending = threading.Event()
        self.seen: list[dict[str, Any]] = []
        self.position = 0

    def run(self) -> None:
        while not self._ending.is_set():
            try:
                self._read()
            except (OSError, ConnectionClosed):
                self._ending.wait(0.2)

    def stop(self) -> None:
        self._ending.set()
        self.join(5)

    def _read(self) -> None:
        address = f"{self._address}?since={self.position}"
        with connect(address, additional_headers=self._headers, proxy=None) as socket:
            while not self._ending.is_set():
                try:
                    frame = json.loads(socket.recv(timeout=0.5))
                except TimeoutError:
                    continue
                self.position = frame["sequence"]
                if frame["kind"] == "event":
                    self.seen.append(frame)
