"""Waiting for the pipeline, with a word to whoever waits once it takes long."""

import sys
import time

_POLL_SECONDS, _LONG_SECONDS = 0.2, 60.0


class Patience:
    """Waits on; a program that gave up would leave it open what becomes of the work."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._late: float | None = time.monotonic() + _LONG_SECONDS

    def pause(self) -> None:
        if self._late is not None and time.monotonic() > self._late:
            self._late = None
            print(
                f"{self._what} waits for the pipeline: `tristore pipeline status` tells how far it "
                "is; Ctrl-C ends the waiting, not the work",
                file=sys.stderr,
            )
        time.sleep(_POLL_SECONDS)
