"""What a limited token sees of the tables over HTTP: those it names, and no sign of the others."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tests.support.api import Api, own_api


@pytest.fixture(scope="module")
def api(server_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    root: Path = tmp_path_factory.mktemp("tables")
    for name in ("events", "filestore_activity"):
        write_deltalake(root / name, pa.table({"n": [1], "day": ["d"]}), partition_by=["day"])
    with own_api(server_url, "inline", TRISTORE_TIMESTORE__ROOT=str(root)) as api:
        yield api


def ask(api: Api, table: str, **limits: list[str]) -> httpx.Response:
    headers = api.bearer("timestore:read", **limits)
    body = {"sql": f"SELECT n FROM {table}"}
    return httpx.post(f"{api.url}/timestore/v1/sql", json=body, headers=headers, timeout=30)


@pytest.mark.parametrize(
    ("limits", "seen"),
    [
        ({}, {"events", "filestore_activity"}),
        ({"mounts": ["lake"]}, set()),
        ({"namespaces": ["n"]}, set()),
        ({"datasets": ["events"]}, {"events"}),
        ({"mounts": ["lake"], "datasets": ["filestore_activity"]}, {"filestore_activity"}),
    ],
)
def test_a_limited_token_reads_the_tables_it_names(
    api: Api, limits: dict[str, list[str]], seen: set[str]
) -> None:
    for table in ("events", "filestore_activity"):
        answer = ask(api, table, **limits)
        if table in seen:
            assert answer.json()["rows"] == [[1]]
            continue
        absent = ask(api, "absent", **limits)
        assert answer.status_code == absent.status_code == 400
        told = answer.json()["detail"].replace(table, "absent")
        assert told == absent.json()["detail"]
