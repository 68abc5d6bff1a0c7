"""Named places where a test can kill, stop or fail the process; free when nothing is armed."""

import errno
import os
import signal
import time
from collections.abc import Callable

_armed: dict[str, tuple[str, int]] = {}
_hits: dict[str, int] = {}


class Skipped(Exception):
    """The step at a failpoint is to be left out; only `skipped` asks for it."""


def arm(spec: str) -> None:
    """`name:action:nth[,…]`; nth counts from 1, and `*` means every time. `sleep` takes a minute,
    `sleep5` five seconds; `hold` blocks the thread until SIGUSR1."""
    _armed.clear()
    _hits.clear()
    for item in filter(None, (part.strip() for part in spec.split(","))):
        name, action, nth = item.split(":")
        if action == "hold":
            # From now on, so that a signal that comes first is not lost, and not deadly.
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
        _armed[name] = (action, 0 if nth == "*" else int(nth))


def armed() -> bool:
    """For places whose names are made at run time: ask before making one."""
    return bool(_armed)


def failpoint(name: str) -> None:
    if not _armed or name not in _armed:
        return
    action, nth = _armed[name]
    _hits[name] = _hits.get(name, 0) + 1
    if nth not in (0, _hits[name]):
        return
    if action.startswith("sleep"):
        time.sleep(float(action.removeprefix("sleep") or 60))
    else:
        _ACTIONS[action](name)


def skipped(name: str) -> bool:
    """Whether the step that follows is to be left out, by the action `skip`."""
    try:
        failpoint(name)
    except Skipped:
        return True
    return False


def _raise(name: str) -> None:
    raise RuntimeError(f"failpoint {name}")


def _skip(name: str) -> None:
    raise Skipped(name)


def _enospc(name: str) -> None:
    raise OSError(errno.ENOSPC, f"failpoint {name}")


_ACTIONS: dict[str, Callable[[str], object]] = {
    "exit9": lambda _: os.kill(os.getpid(), signal.SIGKILL),
    "stop": lambda _: os.kill(os.getpid(), signal.SIGSTOP),
    "hold": lambda _: signal.sigwait({signal.SIGUSR1}),
    "raise": _raise,
    "enospc": _enospc,
    "skip": _skip,
}
