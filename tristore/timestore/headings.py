"""What a chart says of itself: its subject, and one line of what was asked."""

from tristore.timestore import window
from tristore.timestore.charts import Heading
from tristore.timestore.churn import Asked
from tristore.timestore.growth import Folder
from tristore.timestore.window import Window

_NAMES = {"s": "second", "m": "minute", "h": "hour", "d": "day", "w": "week"}


def growth(folder: Folder, asked: Window) -> Heading:
    times = _times(asked.begin, asked.end)
    return Heading(f"Storage growth: {_called(folder)}", f"{times}, by {_bucket(asked.width)}")


def churn(folder: Folder, asked: Asked) -> Heading:
    levels = "1 level" if asked.levels == 1 else f"{asked.levels} levels"
    words = [_times(asked.begin, asked.end), f"folders {levels} down", f"by {asked.by}"]
    return Heading(f"Folders that change most: {_called(folder)}", ", ".join(words))


def _called(folder: Folder) -> str:
    mount = folder.mount or "all mounts"
    return f"{mount}, {folder.prefix}" if folder.prefix else mount


def _times(begin: float, end: float) -> str:
    first, last = (f"{window.moment(seconds):%Y-%m-%d %H:%M}" for seconds in (begin, end))
    return f"{first} to {last} UTC"


def _bucket(width: int) -> str:
    letter, seconds = next(
        (letter, seconds)
        for letter, seconds in reversed(window.SECONDS.items())
        if width % seconds == 0
    )
    count = width // seconds
    return _NAMES[letter] if count == 1 else f"{count} {_NAMES[letter]}s"
