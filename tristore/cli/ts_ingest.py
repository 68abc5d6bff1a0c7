"""A file of rows sent into a dataset, and followed into the table if asked for."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Annotated, Any

import typer

from tristore.cli.client import Client, read_answer
from tristore.cli.counting import counted
from tristore.cli.fs_progress import bytes_bar, counts_bar
from tristore.cli.options import AsJson, DataDir, Slug, Token, Url
from tristore.cli.patience import Patience
from tristore.cli.ts_datasets import PATH
from tristore.errors import Terminal
from tristore.timestore.formats import EXTENSIONS

_PIECE_BYTES = 1024 * 1024
# To connect, to read, to write, to get a connection: the platform reads the rows before it answers.
_TIMEOUTS = (5.0, 600.0, 60.0, 60.0)


def ingest(
    slug: Slug,
    file: Annotated[
        str, typer.Argument(help="JSON, NDJSON, CSV, Parquet or Arrow, by its ending; - for stdin.")
    ],
    format: Annotated[
        str | None, typer.Option(help="json, ndjson, csv, parquet, arrow, where no ending tells.")
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Until the rows are in the table.")] = False,
    key: Annotated[
        str | None, typer.Option(help="Sent again with this key, rows come once.")
    ] = None,
    evolve: Annotated[bool, typer.Option(help="Take in columns the dataset does not have.")] = True,
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Send a file of rows into a dataset: all of them, or none with every reason."""
    media = _media(file, format)
    client = Client.find(url, token, data_dir)
    headers = {"Content-Type": media} | ({"Idempotency-Key": key} if key else {})
    with _opened(file) as source, client.http() as http:
        size = None if file == "-" else Path(file).stat().st_size
        with bytes_bar(f"ingest {file}", size, quiet=as_json) as advance:
            sent = http.post(
                f"{PATH}/{slug}/ingest",
                content=_pieces(source, advance),
                headers=headers,
                params={"evolve": evolve},
                timeout=_TIMEOUTS,
            )
        found = read_answer(sent)
    if wait:
        found = _follow(client, found, as_json)
    if as_json:
        print(json.dumps(found))
    else:
        rows = counted(found["rows"], "row")
        print(f"{rows} {found['status']} as ingest {found['ingestId']}")


def _follow(client: Client, found: dict[str, Any], quiet: bool) -> dict[str, Any]:
    patience = Patience(f"ingest {found['ingestId']}")
    with counts_bar(f"ingest {found['ingestId']}", quiet=quiet) as look:
        while found["status"] == "staged":
            look(found)
            patience.pause()
            found = client.get(f"/timestore/v1/ingests/{found['ingestId']}")
    if found["status"] == "failed":
        raise Terminal(f"the rows did not come into the table: {found['error']}; send them again")
    return found


def _media(file: str, format: str | None) -> str:
    ending = f".{format}" if format else Path(file).suffix.lower()
    if format == "arrow":
        ending = ".arrows"
    if ending not in EXTENSIONS:
        known = " ".join(sorted(EXTENSIONS))
        raise typer.BadParameter(
            f"what {file} holds is not known by its ending ({known}): --format"
        )
    return EXTENSIONS[ending]


def _opened(file: str) -> IO[bytes]:
    try:
        return sys.stdin.buffer if file == "-" else open(file, "rb")
    except OSError as error:
        raise typer.BadParameter(f"{file} cannot be read: {error.strerror}") from None


def _pieces(source: IO[bytes], advance: Callable[[int], None]) -> Iterator[bytes]:
    while piece := source.read(_PIECE_BYTES):
        yield piece
        advance(len(piece))
