"""A loopback port that a server keeps over restarts, and is never shared with a stranger."""

import errno
import secrets
import socket
from pathlib import Path

from tristore.errors import StartRefused
from tristore.local import private_file

# Below the range from which the kernel takes ports for outgoing connections (32768 and up):
# otherwise any client on the machine could sit on the port while we are stopped.
LOWEST, HIGHEST = 20_000, 32_000


def is_free(host: str, port: int) -> bool:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        # As the servers do: a port that only waits out old connections is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
            probe.listen()
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return False
            raise
    return True


def pick() -> int:
    for _ in range(1000):
        port = LOWEST + secrets.randbelow(HIGHEST - LOWEST)
        if is_free("127.0.0.1", port):
            return port
    raise StartRefused(f"no free port between {LOWEST} and {HIGHEST}; stop some servers")


def reserve(server: str, file: Path) -> int:
    """The port kept in `file`, picked at the first start; refused if somebody else has it."""
    port = int(private_file.keep(file, lambda: str(pick())))
    if not is_free("127.0.0.1", port):
        raise held(server, port, file)
    return port


def held(server: str, port: int, file: Path) -> StartRefused:
    return StartRefused(
        f"port 127.0.0.1:{port} of the embedded {server} is held by another program; "
        f"stop that program, or delete {file} to let {server} move to another port"
    )
