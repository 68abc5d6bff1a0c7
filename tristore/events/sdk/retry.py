"""The pauses between the tries of a publisher: growing, capped, and partly left to chance."""

import random

from tristore.config import PublisherSettings


class Backoff:
    """Counts failures in a row; chance keeps many publishers from knocking all at once."""

    def __init__(self, settings: PublisherSettings) -> None:
        self._settings = settings
        self.failures = 0

    def failed(self) -> float:
        """Counts one more failure and says how many seconds to wait."""
        self.failures += 1
        # The exponent is bounded because an outage may last for weeks.
        grown = self._settings.backoff_seconds * 2.0 ** min(self.failures - 1, 30)
        longest = min(grown, self._settings.backoff_cap_seconds)
        return longest * (1 - self._settings.jitter * random.random())

    def succeeded(self) -> None:
        self.failures = 0

    @property
    def exhausted(self) -> bool:
        """So many failures in a row that the bus counts as away."""
        return self.failures >= self._settings.tries
