"""`tristore ts datasets` and `tristore ts ingest`, as a person and as a program would use them."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest
from typer.testing import CliRunner, Result

from tests.support.api import Api, make_token, own_api
from tests.support.timestore import ALL, new_slug
from tests.support.waiting import wait_until
from tristore.cli import app
from tristore.errors import TristoreError

Run = Callable[..., Result]


@pytest.fixture(scope="module")
def api(server_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    folder = tmp_path_factory.mktemp("data")
    with own_api(server_url, "inline", TRISTORE_DATA_DIR=str(folder)) as api:
        yield api


@pytest.fixture(scope="module")
def run(api: Api) -> Run:
    where = {"TRISTORE_URL": api.url, "TRISTORE_TOKEN": make_token(api.database, *ALL)}

    def invoke(*argv: str, stdin: bytes | None = None) -> Result:
        given = {**where, "COLUMNS": "200"}
        return CliRunner().invoke(app, ["ts", *argv], input=stdin, env=given)

    return invoke


def answer(result: Result) -> Any:
    assert result.exit_code == 0, (result.output, result.exception)
    return json.loads(result.stdout)


def test_a_datasets_life(run: Run, tmp_path: Path) -> None:
    slug = new_slug()
    columns = ("at:timestamp", "station:string!", "celsius:double")
    made = answer(run("datasets", "create", slug, *columns, "--max-age", "90d", "--json"))
    assert made["timeColumn"] == "at" and made["retention"] == {"maxAge": "90d"}
    assert [column["nullable"] for column in made["schema"]] == [False, False, True]
    altered = answer(run("datasets", "alter", slug, "wind:long", "--lateness", "5", "--json"))
    assert altered["schema"][-1]["name"] == "wind" and altered["latenessSeconds"] == 5
    both = answer(run("datasets", "alter", slug, "--max-bytes", "1000000", "--json"))
    assert both["retention"] == {"maxAge": "90d", "maxBytes": 1000000}, "the other limit stays"
    assert answer(run("datasets", "alter", slug, "--keep-all", "--json"))["retention"] == {}
    run("datasets", "alter", slug, "--max-age", "90d")
    listed = run("datasets", "list").stdout
    assert slug in listed and "filestore_growth" in listed and "90d" in listed
    assert "celsius" in run("datasets", "show", slug).stdout

    file = tmp_path / "rows.csv"
    file.write_text("at,station,celsius\n2026-11-15T10:00:00Z,a,1.5\n2026-11-15T11:00:00Z,b,\n")
    told = run("ingest", slug, str(file))
    assert told.exit_code == 0 and told.stdout.startswith("2 rows staged as ingest ")
    line = b'{"at": "2026-11-15T12:00:00Z", "station": "c"}\n'
    told = run("ingest", slug, "-", "--format", "ndjson", stdin=line)
    assert told.stdout.startswith("1 row staged as ingest ")
    argv = ("ingest", slug, "-", "--format", "ndjson", "--key", "k", "--json")
    first, again = (answer(run(*argv, stdin=line)) for _ in range(2))
    assert first == again and first["rows"] == 1
    assert answer(run("datasets", "delete", slug, "--json")) == {"deleted": slug}
    assert isinstance(run("datasets", "show", slug).exception, TristoreError)


@pytest.mark.parametrize("becomes", ["committed", "failed"])
def test_waiting_ends_when_it_is_known_what_became_of_the_rows(
    run: Run, api: Api, becomes: str
) -> None:
    """In place of a pipeline."""
    slug = new_slug()
    run("datasets", "create", slug, "at:timestamp")
    settle = "UPDATE timestore.ingest_batches SET state = %s, error = 'torn' WHERE dataset = %s"

    def pipeline() -> None:
        with psycopg.connect(api.database, autocommit=True) as conn:
            wait_until(lambda: conn.execute(settle, (becomes, slug)).rowcount == 1, 60)

    with ThreadPoolExecutor(1) as pool:
        working = pool.submit(pipeline)
        argv = ("ingest", slug, "-", "--format", "ndjson", "--wait")
        told = run(*argv, stdin=b'{"at": "2026-11-15T12:00:00Z"}')
        working.result()
    if becomes == "committed":
        assert told.stdout.startswith("1 row committed as ingest "), told.output
    else:
        assert "torn; send them again" in str(told.exception)


def test_what_cannot_be_sent_is_refused_in_one_line(run: Run, tmp_path: Path) -> None:
    slug = new_slug()
    run("datasets", "create", slug, "at:timestamp", "n:long")
    file = tmp_path / "rows.ndjson"
    file.write_text('{"at": "2026-11-15", "n": 1}\n{"at": "2026-11-15", "n": "x"}\n')
    assert "/rows/1/n" in str(run("ingest", slug, str(file)).exception)
    assert run("ingest", slug, str(tmp_path / "rows.txt")).exit_code == 2
    assert run("ingest", slug, str(tmp_path / "none.csv")).exit_code == 2
    assert run("datasets", "create", slug, "n:long").exit_code == 2
    assert run("datasets", "create", slug, "n").exit_code == 2
    assert run("datasets", "alter", slug).exit_code == 2
