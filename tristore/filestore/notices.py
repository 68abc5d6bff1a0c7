"""What tells of changes under a folder on this system."""

import sys

from tristore.filestore.hints import Notices


def notices(root: str) -> Notices:
    """The best this system has. On Linux that is inotify itself: only so is an overflow seen."""
    if sys.platform == "linux":
        from tristore.filestore.notices_inotify import InotifyNotices

        return InotifyNotices(root)
    from tristore.filestore.notices_watchfiles import WatchfilesNotices

    return WatchfilesNotices(root)
