"""`tristore meta …`, as a person and as a program would use it."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from tests.support import command
from tests.support.api import Api, make_token, own_api
from tests.support.metastore import ALL, new_namespace
from tristore.cli import app
from tristore.errors import TristoreError

Run = Callable[..., Result]


@pytest.fixture(scope="module")
def api(server_url: str) -> Iterator[Api]:
    with own_api(server_url, "inline") as api:
        yield api


@pytest.fixture(scope="module")
def where(api: Api) -> dict[str, str]:
    return {"TRISTORE_URL": api.url, "TRISTORE_TOKEN": make_token(api.database, *ALL)}


@pytest.fixture(scope="module")
def run(where: dict[str, str]) -> Run:
    """Without a process for each command; what the command line itself does is tested below."""

    def invoke(*argv: str, stdin: str | None = None) -> Result:
        return CliRunner().invoke(
            app, ["meta", *argv], input=stdin, env={**where, "COLUMNS": "200"}
        )

    return invoke


def answer(result: Result) -> Any:
    assert result.exit_code == 0, (result.output, result.exception)
    return json.loads(result.stdout)


def test_a_records_life(run: Run) -> None:
    place = (new_namespace(), "in/f 7.txt")

    def ask(verb: str, *argv: str, stdin: str | None = None) -> Any:
        return answer(run(verb, *place, *argv, "--json", stdin=stdin))

    made = ask("put", "--metadata", '{"n": 1}', "--tag", "raw", "--owner", "ops")
    assert made["version"] == 1 and made["key"] == "in/f 7.txt"
    assert ask("get") == made
    patched = ask("patch", "--metadata", "-", "--add-tag", "gold", stdin='{"m": 2, "n": null}')
    assert patched["metadata"] == {"m": 2} and patched["tags"] == ["gold", "raw"]
    assert ask("patch", "--no-owner", "--set-tag", "x")["owner"] is None
    assert ask("rm", "--if-match", "3")["deletedAt"]
    assert ask("get", "--deleted")["version"] == 4
    assert ask("restore", "1")["metadata"] == {"n": 1}
    actions = [item["action"] for item in ask("history")["items"]]
    assert actions == ["restore", "delete", "update", "update", "create"]
    assert run("purge", *place, stdin="n\n").exit_code == 1
    assert ask("purge", "--yes")["purged"]


def test_people_see_tables(run: Run) -> None:
    place = (new_namespace(), "k")
    shown = run("put", *place, "--metadata", '{"a": "[bold]x[/]"}', "--tag", "t")
    assert shown.exit_code == 0 and "[bold]x[/]" in shown.stdout
    assert "create" in run("history", *place).stdout
    assert "[bold]x[/]" in run("search", "tag:t", "-n", place[0], "--count").stdout
    refused = run("get", place[0], "absent")
    assert isinstance(refused.exception, TristoreError) and refused.stdout == ""
    wrong = run("put", *place, "--metadata", "{")
    assert wrong.exit_code == 2 and "JSON" in wrong.output


def test_a_refusal_is_one_line_and_a_failure(api: Api, where: dict[str, str]) -> None:
    place = (new_namespace(), "k")
    command.answer(api.settings, "meta", "put", *place, **where)
    refused = command.tristore(api.settings, "meta", "rm", *place, "--if-match", "9", **where)
    assert refused.returncode == 1 and refused.stdout == ""
    assert refused.stderr.count("\n") == 1 and "version is 1" in refused.stderr


def test_namespaces_are_listed_shown_and_ruled(run: Run) -> None:
    name = new_namespace()
    answer(run("put", name, "k", "--json"))
    said = run("namespaces", name, "--set", '{"requireOwner": true}')
    assert "1 of 1 records do not fit" in said.stdout and "/owner" in said.stdout
    assert answer(run("namespaces", name, "--json"))["requireOwner"] is True
    listed = answer(run("namespaces", "--json"))["items"]
    assert name in [item["name"] for item in listed]
    assert name in run("namespaces").stdout


def test_many_changes_come_from_a_file(run: Run, tmp_path: Path) -> None:
    name = new_namespace()
    lines = [{"op": "upsert", "namespace": name, "key": f"k{n}"} for n in range(2500)]
    lines.append({"op": "delete", "namespace": name, "key": "absent"})
    file = tmp_path / "items.ndjson"
    file.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    said = run("bulk", str(file))
    assert said.exit_code == 1 and said.stdout == "2500 created, 1 refused\n"
    assert "absent: there is no such record" in said.stderr
    found = answer(run("search", "key:k24*", "-n", name, "--sort", "key:desc", "--json"))
    assert [item["key"] for item in found["items"]][:2] == ["k2499", "k2498"]
    whole = run("bulk", "-", "--atomic", "--json", stdin=json.dumps(lines))
    assert isinstance(whole.exception, TristoreError) and "item 2500" in str(whole.exception)
