"""The data folder of the embedded Postgres: made whole or not at all, and owned by its server.

Postgres refuses to run as root. Started by root, it runs as an unprivileged user, who may
not be allowed to pass the folders above its data (a 0700 home, a temporary folder). Those
modes stay as they are: root opens the data folder and hands it over as an open file, and
`/proc/self/fd/N` leads into it without asking the parents.
"""

import os
import pwd
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import DEVNULL, TimeoutExpired

from tristore.errors import StartRefused
from tristore.local import leftovers, postgres_binaries, private_file
from tristore.local.child import Child, Command, Owner

USER = DATABASE = "tristore"
# Nothing of our own environment: a stray PGPORT or LC_ALL must not reach the server.
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}
INITDB = [
    f"--username={USER}",
    "--auth=scram-sha-256",
    "--encoding=UTF8",
    "--locale=C",
    "--locale-provider=builtin",
    "--builtin-locale=C.UTF-8",
    "--data-checksums",
    "--pwfile=/proc/self/fd/0",
]
CREATE_SECONDS = 120
SWEEP_SECONDS = 10


class Cluster:
    def __init__(self, folder: Path, log: Path) -> None:
        self.folder = folder
        self.data = folder / "pg"
        self.log = log
        self.owner = self._owner() if os.geteuid() == 0 else None
        find = postgres_binaries.for_anyone if self.owner else postgres_binaries.for_ourselves
        self.binaries = find()
        self._making: Child | None = None

    @property
    def name(self) -> str:
        """Shown in the command line of every process of this cluster; tied to the folder
        itself, so that a copied folder is another cluster."""
        found = self.data.stat()
        return f"tristore-{found.st_dev:x}-{found.st_ino:x}"

    def ensure(self, password: str) -> None:
        version = self.data / "PG_VERSION"
        if not version.exists():
            self._create(password)
        elif (found := version.read_text().strip()) != postgres_binaries.MAJOR:
            raise StartRefused(
                f"{self.data} holds data of Postgres {found}, and this is Postgres "
                f"{postgres_binaries.MAJOR}; move it with pg_dump and pg_restore"
            )

    def start(self, program: str, *options: str, data: Path, stdin: int = DEVNULL) -> Child:
        head, *flags = program.split()
        with self._door(data) as (path, fds):
            return Child(
                Command(
                    [str(self.binaries / head), *flags, "-D", path, *options],
                    log=self.log,
                    env=ENVIRONMENT,
                    cwd=Path("/"),
                    owner=self.owner,
                    stdin=stdin,
                    pass_fds=fds,
                    # Immediate shutdown: the postmaster takes its backends with it.
                    death_signal=signal.SIGQUIT,
                )
            )

    def clear_leftovers(self, timeout: float) -> None:
        """Stops what still serves this folder and removes its lock file.

        Postgres would refuse a lock file whose pid now belongs to anybody else, which is
        common after a container restart. Removing it is safe only once no process is left.
        """
        name = self.name
        leftovers.stop(lambda p: any(name in word for word in p.cmdline()), signal.SIGINT, timeout)
        (self.data / "postmaster.pid").unlink(missing_ok=True)

    def abandon(self) -> None:
        """Ends the making of a database that another thread waits for."""
        if self._making:
            self._making.kill()

    def _owner(self) -> Owner:
        if not self.data.exists():
            nobody = pwd.getpwnam("nobody")
            return Owner(nobody.pw_uid, nobody.pw_gid)
        found = self.data.stat()
        if found.st_uid == 0:
            raise StartRefused(
                f"{self.data} belongs to root, and Postgres does not run as root; "
                f"give it away with: chown -R nobody {self.data}"
            )
        return Owner(found.st_uid, found.st_gid)

    def _create(self, password: str) -> None:
        """A killed attempt leaves only a `pg.new-*` folder, which the next one sweeps."""
        for stale in self.folder.glob("pg.new-*"):
            _remove(stale)
        fresh = Path(tempfile.mkdtemp(prefix="pg.new-", dir=self.folder))
        if self.owner:
            os.chown(fresh, self.owner.uid, self.owner.gid)
        with _in_memory(password) as stdin:
            self._finish(self.start("initdb", *INITDB, data=fresh, stdin=stdin))
        with _in_memory(f"CREATE DATABASE {DATABASE}") as stdin:
            self._finish(self.start("postgres --single", "postgres", data=fresh, stdin=stdin))
        fresh.rename(self.data)
        private_file.sync_folder(self.folder)

    def _finish(self, child: Child) -> None:
        self._making = child
        try:
            code = child.wait(CREATE_SECONDS)
        except TimeoutExpired:
            code = child.stop(0)
        if code != 0:
            program = Path(child.command.argv[0]).name
            raise StartRefused(f"{program} could not make a database; its reason is in {self.log}")

    @contextmanager
    def _door(self, data: Path) -> Iterator[tuple[str, tuple[int, ...]]]:
        if self.owner is None:
            yield str(data), ()
            return
        fd = os.open(data, os.O_RDONLY | os.O_DIRECTORY)
        try:
            yield f"/proc/self/fd/{fd}", (fd,)
        finally:
            os.close(fd)


@contextmanager
def _in_memory(text: str) -> Iterator[int]:
    """An open file that is on no disk, for what the server's user shall read from us."""
    fd = os.memfd_create("tristore")
    try:
        os.write(fd, text.encode() + b"\n")
        os.lseek(fd, 0, os.SEEK_SET)
        yield fd
    finally:
        os.close(fd)


def _remove(stale: Path) -> None:
    """A killed attempt's initdb may live on for a moment and write between our listing of the
    folder and its removal; once the folder is gone it can write no more."""
    deadline = time.monotonic() + SWEEP_SECONDS
    shutil.rmtree(stale, ignore_errors=True)
    while stale.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
        shutil.rmtree(stale, ignore_errors=True)
