"""Which S3 servers a mount may speak to: public ones by TLS, others only when they are listed."""

import asyncio
import ipaddress
import re
import socket
from typing import NamedTuple
from urllib.parse import urlsplit

from tristore.config import Settings
from tristore.errors import MountRefused, Unavailable

_PORTS = {"http": 80, "https": 443}
_HOST = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")
# The IPv4 address stands in the last 32 bits (RFC 6052).
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_RESOLVE_SECONDS = 5

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Endpoint(NamedTuple):
    scheme: str
    host: str
    port: int

    @property
    def origin(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


async def check_endpoint(text: str, settings: Settings) -> Endpoint:
    """Asked when a mount is made and again whenever its store is opened.

    Between the two a name may come to mean another address. An endpoint that is not listed is
    reached by TLS only, and a server that was slipped in has no certificate for the name.
    """
    endpoint = parse(text)
    if endpoint in listed(settings):
        return endpoint
    if endpoint.scheme != "https":
        raise MountRefused(
            f"{endpoint.origin} is reached without TLS; list it in "
            "TRISTORE_FILESTORE__ALLOWED_ENDPOINTS to use it all the same"
        )
    if not all(map(public, await resolve(endpoint))):
        raise MountRefused(
            f"{endpoint.origin} is an address of a private network or of this machine; list it in "
            "TRISTORE_FILESTORE__ALLOWED_ENDPOINTS to use it all the same"
        )
    return endpoint


def parse(text: str) -> Endpoint:
    try:
        parts = urlsplit(text)
        port = parts.port
        # Otherwise dropped without a word.
        if not text.isprintable():
            raise ValueError(text)
    except ValueError:
        raise MountRefused(
            "the endpoint is no URL; write https://host or https://host:port"
        ) from None
    if parts.scheme not in _PORTS:
        raise MountRefused("the endpoint of a mount begins with https:// or http://")
    if parts.path not in ("", "/") or parts.query or parts.fragment or "@" in parts.netloc:
        raise MountRefused("the endpoint is a scheme, a host and a port; it has no other parts")
    return Endpoint(parts.scheme, _host(parts.hostname or ""), port or _PORTS[parts.scheme])


def _host(name: str) -> str:
    try:
        return str(ipaddress.ip_address(name))
    except ValueError:
        if _HOST.fullmatch(name):
            return name
        raise MountRefused("the host of the endpoint is neither a name nor an address") from None


def listed(settings: Settings) -> set[Endpoint]:
    texts = settings.filestore.allowed_endpoints.split(",")
    return {parse(text.strip()) for text in texts if text.strip()}


async def resolve(endpoint: Endpoint) -> list[Address]:
    """Every address the host has; forms such as 127.1 and 0x7f000001 become plain ones here."""
    loop = asyncio.get_running_loop()
    asked = loop.getaddrinfo(endpoint.host, endpoint.port, type=socket.SOCK_STREAM)
    try:
        found = await asyncio.wait_for(asked, _RESOLVE_SECONDS)
    except (OSError, UnicodeError):
        raise Unavailable(f"the host of {endpoint.origin} cannot be found; try again") from None
    return [ipaddress.ip_address(str(item[4][0]).partition("%")[0]) for item in found]


def public(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo or (None,))[-1]
        if address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return public(inner)
    return address.is_global and not address.is_multicast
