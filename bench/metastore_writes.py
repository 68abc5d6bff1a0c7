"""Records written over HTTP, one by one and in bulk, each with its audit row and its event, while
relay and ingress run; beside bare SQL that writes the same rows."""

import json
import time
from collections.abc import Iterable, Iterator
from typing import Any

import psycopg

from bench.figure import Figure
from bench.http_load import load, parallel, request
from bench.mounted import TOKEN
from bench.servers import part, servers, stored, wait_until
from tristore.config import Settings
from tristore.db.queries import load as queries
from tristore.local.port import pick
from tristore.tokens import hashed

CLIENTS = 8
BATCH = 1000
BULK_CLIENTS = 2
_JSON = "Content-Type: application/json"
_ENVELOPE = "x" * 420
_sql = queries("bench", "metastore_writes.sql")


def run(scale: float = 1.0) -> list[Figure]:
    creates, bulk = int(8_000 * scale), int(60_000 * scale)
    with servers() as (settings, _):
        settings = settings.model_copy(update={"port": pick()})
        _make_token(settings)
        limits = _bare_creates(settings, creates), _bare_bulk(settings, bulk)
        with part(settings, "serve"), part(settings, "work", "relay,ingress"):
            wait_until(lambda: _answers(settings))
            _create(settings, "warm", 400)
            rates = _create(settings, "one", creates), _bulk(settings, bulk)
            wait_until(lambda: stored(settings) == 400 + creates + bulk)
    return [
        Figure(
            f"metastore creates over HTTP, {CLIENTS} clients",
            *(rates[0], "records/s", limits[0]),
            "bare SQL, the same three rows a commit",
            "900/s",
        ),
        Figure(
            f"metastore bulk upserts over HTTP, {BATCH:,} a call, {BULK_CLIENTS} clients",
            *(rates[1], "records/s", limits[1]),
            "bare SQL, the same rows and commits",
            "8,000/s",
        ),
    ]


def record(number: int) -> dict[str, Any]:
    metadata = {"n": number, "size": number * 37 % 100_000, "kind": f"kind{number % 50}"}
    metadata["note"] = "x" * 100
    return {"key": f"key-{number:08}", "metadata": metadata, "tags": ["raw", f"t{number % 20}"]}


def _create(settings: Settings, namespace: str, count: int) -> float:
    def requests(client: int) -> Iterator[bytes]:
        for number in range(client, count, CLIENTS):
            body = json.dumps({"namespace": namespace, **record(number)}).encode()
            yield request("POST", "/metastore/v1/records", body, _JSON)

    return count / load(settings.port, CLIENTS, requests)


def _bulk(settings: Settings, count: int) -> float:
    def requests(client: int) -> Iterable[bytes]:
        return bodies[client::BULK_CLIENTS]

    bodies = [
        request("POST", "/metastore/v1/records/bulk", _bulk_body(start), _JSON)
        for start in range(0, count, BATCH)
    ]
    return count / load(settings.port, BULK_CLIENTS, requests)


def _bulk_body(start: int) -> bytes:
    items = [
        {"op": "upsert", "namespace": "many", **record(number)}
        for number in range(start, start + BATCH)
    ]
    return json.dumps({"mode": "atomic", "items": items}).encode()


def _bare_creates(settings: Settings, count: int) -> float:
    """As many connections as clients, each record a transaction in one round trip."""

    def play(client: int) -> None:
        with psycopg.connect(str(settings.database_url), autocommit=True) as conn:
            for number in range(client, count, CLIENTS):
                row = {**_row(number), "envelope": _ENVELOPE}
                with conn.pipeline(), conn.transaction():
                    for statement in (_sql.record, _sql.audit, _sql.event):
                        conn.execute(statement, row)

    rate = count / parallel(CLIENTS, play, [])
    _empty(settings)
    return rate


def _bare_bulk(settings: Settings, count: int) -> float:
    parts = [
        json.dumps([record(number) for number in range(start, start + BATCH)])
        for start in range(0, count, BATCH)
    ]
    with psycopg.connect(str(settings.database_url), autocommit=True) as conn:
        begun = time.perf_counter()
        for rows in parts:
            with conn.transaction():
                conn.execute(_sql.records, {"rows": rows})
                conn.execute(_sql.events, {"rows": rows, "envelope": _ENVELOPE})
        seconds = time.perf_counter() - begun
    _empty(settings)
    return count / seconds


def _row(number: int) -> dict[str, Any]:
    found = record(number)
    return {**found, "metadata": json.dumps(found["metadata"])}


def _empty(settings: Settings) -> None:
    with psycopg.connect(str(settings.database_url), autocommit=True) as conn:
        conn.execute("TRUNCATE metastore.records, metastore.record_audits, bus.outbox")


def _make_token(settings: Settings) -> None:
    with psycopg.connect(str(settings.database_url), autocommit=True) as conn:
        conn.execute(
            "INSERT INTO bus.tokens (name, hash, scopes) VALUES ('bench', %s, %s)",
            [hashed(TOKEN), ["metastore:read", "metastore:write"]],
        )


def _answers(settings: Settings) -> bool:
    try:
        load(settings.port, 1, lambda _: [request("GET", "/healthz", b"")])
    except SystemExit:
        return False
    return True
