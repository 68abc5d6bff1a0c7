"""What a folder's operating system refuses, in the platform's words."""

import errno

from tristore import errors

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_FORBIDDEN = {errno.EROFS, errno.EACCES, errno.EPERM}
_IN_THE_WAY = {errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENOTEMPTY}
_SPECIAL = {errno.ENXIO, errno.ENODEV, errno.ELOOP}


def refusal(error: OSError, *, writing: bool) -> errors.TristoreError:
    """Says nothing of where on the machine it happened: answers carry it."""
    code = error.errno
    if code in _FULL:
        return errors.StorageFull("the mount has no room for this; free some and try again")
    if code in _FORBIDDEN:
        return _forbidden(writing)
    if code == errno.ENOENT:
        return errors.ContentGone("the content is no longer on the mount; reconcile the path")
    if code in _IN_THE_WAY:
        return errors.ContentConflict("something else stands there on the mount; reconcile it")
    if code in _SPECIAL:
        return not_regular()
    if code == errno.EXDEV:
        return errors.StorageRefused(
            "the path lies on another filesystem than its mount; mount that one by itself"
        )
    if code == errno.ENAMETOOLONG:
        return errors.InvalidPath("the name is too long for this mount; choose a shorter one")
    return errors.Unavailable("the mount's storage does not answer as it should; try again")


def not_regular() -> errors.ContentUnreadable:
    return errors.ContentUnreadable(
        "a link or a special file stands there; the filestore reads regular files only"
    )


def _forbidden(writing: bool) -> errors.TristoreError:
    if writing:
        return errors.StorageRefused(
            "the mount's storage does not let the platform write there; check who may"
        )
    return errors.ContentUnreadable(
        "the mount's storage does not let the platform read that; check who may"
    )
