"""Trash: a tree that nobody can reach any more, removed for good."""

import os
from contextlib import suppress
from uuid import uuid4

from tristore.filestore.beneath import open_in


def forget_tree(area: int, name: str) -> None:
    """Removes the directory `name` of an open directory, with all that lies in it.

    Each directory is emptied by bringing those in it up beside it: however deep the tree is, one
    descriptor and no recursion are enough. What a crash leaves there the sweep finds.
    """
    waiting = [name]
    while waiting:
        top = waiting.pop()
        with suppress(FileNotFoundError):
            waiting += _emptied(area, top)
            os.rmdir(top, dir_fd=area)


def _emptied(area: int, name: str) -> list[str]:
    """The new names of the directories that lay in it."""
    raised = []
    directory = open_in(area, name)
    try:
        with os.scandir(directory) as found:
            inside = [(item.name, item.is_dir(follow_symlinks=False)) for item in found]
        for inner, is_directory in inside:
            if is_directory:
                raised.append(uuid4().hex)
                os.rename(inner, raised[-1], src_dir_fd=directory, dst_dir_fd=area)
            else:
                os.unlink(inner, dir_fd=directory)
    finally:
        os.close(directory)
    return raised
