"""Refuses to face a network with a database whose password anybody could guess."""

import ipaddress

from psycopg.conninfo import conninfo_to_dict

from tristore.config import Settings
from tristore.errors import StartRefused

_GUESSED_FIRST = frozenset(
    {
        "",
        "admin",
        "changeme",
        "default",
        "example",
        "password",
        "postgres",
        "root",
        "secret",
        "test",
    }
)


def check_exposure(settings: Settings) -> None:
    if settings.database_url is None or _is_loopback(settings.host):
        return
    given = conninfo_to_dict(settings.database_url)
    host = str(given.get("host") or "")
    # No password is right where another proof stands in for it.
    if not host or host.startswith("/") or given.get("sslcert") or given.get("passfile"):
        return
    password = str(given.get("password") or "")
    if password.lower() in _GUESSED_FIRST or password in (given.get("user"), given.get("dbname")):
        raise StartRefused(
            f"TRISTORE_HOST={settings.host} is open to the network while TRISTORE_DATABASE_URL has "
            "no password or a well-known one; set a random password, or listen on 127.0.0.1"
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
