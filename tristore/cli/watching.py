"""A live feed for the command line: reconnects by position, so that nothing is missed."""

import json
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import urlencode

from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException
from websockets.sync.client import connect

from tristore.cli.client import Client
from tristore.errors import Forbidden, Terminal, Unauthenticated

_PAUSES = (0.2, 0.5, 1.0, 2.0, 5.0)
# Trying again cannot help: the token has ended, or the log does not have that position.
_FINAL = {
    4401: "the token has ended",
    4409: "the log has not come so far",
    4410: "not kept any more",
}


def frames(client: Client, types: Sequence[str], since: int | None) -> Iterator[dict[str, Any]]:
    """Events for ever. Raises when going on is impossible."""
    position, failures = since, 0
    while True:
        try:
            for frame in _connection(client, types, position):
                position, failures = frame["sequence"], 0
                if frame["kind"] == "event":
                    yield frame["event"]
        except ConnectionClosed as closed:
            _stop_if_final(closed)
        except InvalidStatus as refused:
            _stop_if_refused(refused.response.status_code)
        except (WebSocketException, OSError, TimeoutError):
            pass
        if failures == 0:
            print("connection lost, going on where it was", file=sys.stderr)
        time.sleep(_PAUSES[min(failures, len(_PAUSES) - 1)])
        failures += 1


def _connection(
    client: Client, types: Sequence[str], since: int | None
) -> Iterator[dict[str, Any]]:
    query = [("type", each) for each in types] + ([] if since is None else [("since", since)])
    address = f"{client.websocket_url}/ws?{urlencode(query)}"
    with connect(
        address, additional_headers=client.headers, max_size=None, compression=None, proxy=None
    ) as socket:
        for message in socket:
            yield json.loads(message)


def _stop_if_final(closed: ConnectionClosed) -> None:
    code = closed.rcvd.code if closed.rcvd else None
    if code in _FINAL:
        reason = closed.rcvd.reason if closed.rcvd else ""
        raise Terminal(f"{_FINAL[code]} ({reason})") from None


def _stop_if_refused(status: int) -> None:
    if status == 401:
        raise Unauthenticated("the token is unknown, revoked or expired")
    if status == 403:
        raise Forbidden("the token may not read events (it needs events:read), or is not known")
