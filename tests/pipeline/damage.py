"""Files that rot, and a reader that has seen nothing of them yet."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson

from tristore.pipeline import catalogue
from tristore.pipeline.session import PipelineConfig
from tristore.timestore.logrows import LogRows
from tristore.timestore.offer import Offers
from tristore.timestore.query import Engine
from tristore.timestore.query_api import source
from tristore.timestore.requests import Query
from tristore.timestore.tail import LogTail

ALL_EVENTS = "SELECT * FROM events ORDER BY ingress_sequence"


@contextmanager
def changed(file: Path, content: bytes) -> Iterator[None]:
    before = file.read_bytes()
    file.write_bytes(content)
    yield
    file.write_bytes(before)


def flipped(content: bytes, bit: int) -> bytes:
    found = bytearray(content)
    found[bit // 8] ^= 1 << bit % 8
    return bytes(found)


class Reader:
    """A worker that has seen nothing yet, without its process."""

    def __init__(self, config: PipelineConfig, log: LogRows) -> None:
        self._config = config
        self._log = log

    def rows(self, table: str, sql: str) -> Any:
        engine = Engine(Offers(self._config.tables, LogTail(self._log), 2))
        asked = Query([source(catalogue.find(self._config, table))], sql)
        return orjson.loads(engine.run(asked).body)["rows"]

    def events(self) -> Any:
        return self.rows("events", ALL_EVENTS)

    def activity(self) -> Any:
        return self.rows("filestore_activity", "SELECT count(*) FROM filestore_activity")
