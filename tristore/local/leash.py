"""Turns into another program that gets a signal the moment its parent dies; run as a script.

`leash.py PARENT_PID SIGNAL UID:GID|- PROGRAM ARGS…`. A script of its own instead of a
`preexec_fn`, which is unsafe where the parent has threads.
"""

import ctypes
import os
import sys

PR_SET_PDEATHSIG = 1


def drop(owner: str) -> None:
    uid, gid = (int(part) for part in owner.split(":"))
    os.setgroups([])
    os.setgid(gid)
    os.setuid(uid)


def main() -> None:
    parent, signal, owner, *argv = sys.argv[1:]
    if owner != "-":
        drop(owner)
    # After the drop: a change of uid clears the setting.
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, int(signal), 0, 0, 0) != 0:
        sys.exit(f"prctl failed: {os.strerror(ctypes.get_errno())}")
    # The parent may have died before the line above; then no signal would ever come.
    if os.getppid() != int(parent):
        sys.exit("the parent process is gone")
    try:
        os.execv(argv[0], argv)
    except OSError as error:
        sys.exit(f"cannot run {argv[0]}: {error.strerror}")


if __name__ == "__main__":
    main()
