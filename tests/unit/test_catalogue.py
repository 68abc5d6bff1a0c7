"""The catalogue: schemas, the models made from them, and the page that describes them agree."""

import runpy
import subprocess
import sys
from dataclasses import fields
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, get_args, get_type_hints

import jsonschema_rs
import pytest

from tristore.errors import InvalidEvent
from tristore.events import payloads
from tristore.events.catalogue import CatalogueEntry, entries, latest
from tristore.events.payload import JsonObject, Payload
from tristore.events.payloads import TimestorePartitionClosed

ROOT = Path(__file__).parents[2]
ENTRIES = entries()

NODE = "nodeId mount path kind version sizeBytes sizeDelta state journalId command"
SEEN = "nodeId mount path kind version state outcome sizeBytes sizeDelta journalId reason"
RECORD = "namespace key version tags actor changed"
# Required fields, and after the bar the optional ones.
CONTRACT = {
    "filestore.node.created": f"{NODE} | checksum principal",
    "filestore.node.updated": f"{NODE} | checksum principal",
    "filestore.node.deleted": f"{NODE} | checksum principal",
    "filestore.node.moved": f"{NODE} | checksum principal previousPath previousMount",
    "filestore.node.copied": f"{NODE} | checksum principal sourceNodeId",
    "filestore.node.reconciled": f"{SEEN} | checksum",
    "filestore.node.missing": f"{SEEN} | checksum",
    "filestore.nodes.imported": "mount journalId sizeDelta nodes |",
    "filestore.drift.detected": "mount path reason journalId | nodeId",
    "filestore.command.completed": "journalId command mount path status durationMs bytes"
    " nodesAffected | idempotencyKey principal error",
    "metastore.record.created": f"{RECORD} | owner restoredFrom",
    "metastore.record.updated": f"{RECORD} | owner restoredFrom",
    "metastore.record.deleted": f"{RECORD} | owner mode",
    "timestore.partition.closed": "dataset partition from to rows bytes files tableVersion"
    " revision |",
    "timestore.dataset.exported": "dataset exportId format target rows bytes files | from to",
}

each_schema = pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: f"{e.type}.v{e.version}")
each_example = pytest.mark.parametrize(
    ("entry", "example"),
    [(entry, example) for entry in ENTRIES for example in entry.schema["examples"]],
    ids=lambda value: value.type if isinstance(value, CatalogueEntry) else "",
)


def validator(schema: dict[str, Any]) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(
        schema, validate_formats=True, offline=True, pattern_options=jsonschema_rs.RegexOptions()
    )


def objects(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """The schema and every object schema inside it."""
    inner = [field.get("items", field) for field in schema["properties"].values()]
    return [schema, *(part for part in inner if part["type"] == "object")]


def models() -> dict[str, type[Payload]]:
    found = [value for value in vars(payloads).values() if isinstance(value, type)]
    return {m.TYPE: m for m in found if issubclass(m, Payload) and m is not Payload}


def build(model: type[JsonObject], example: dict[str, Any]) -> JsonObject:
    hints = get_type_hints(model)
    given = {snake(key): value for key, value in example.items()}
    return model(**{name: typed(hints[name], value) for name, value in given.items()})


def snake(key: str) -> str:
    name = "".join(f"_{c.lower()}" if c.isupper() else c for c in key)
    return "from_" if name == "from" else name


def typed(hint: Any, value: Any) -> Any:
    options = get_args(hint)
    if isinstance(value, list):
        return tuple(typed(options[0], item) for item in value)
    if isinstance(value, dict):
        return build(hint, value)
    return datetime.fromisoformat(value) if datetime in (hint, *options) else value


def test_the_catalogue_is_the_contract() -> None:
    for type, line in CONTRACT.items():
        entry = latest(type)
        assert entry is not None, type
        required, optional = (part.split() for part in line.split("|"))
        assert set(entry.schema["required"]) == set(required), type
        assert set(entry.schema["properties"]) == {*required, *optional}, type
    assert {entry.type for entry in ENTRIES} == set(CONTRACT)


def test_an_imported_node_has_the_contracts_fields() -> None:
    entry = latest("filestore.nodes.imported")
    assert entry is not None
    node = entry.schema["properties"]["nodes"]["items"]
    assert set(node["required"]) == {"nodeId", "path", "kind", "version", "sizeBytes"}
    assert set(node["properties"]) == {*node["required"], "checksum"}
    assert entry.schema["properties"]["nodes"]["maxItems"] == 500


def test_versions_of_a_type_have_no_gap_and_latest_is_the_highest() -> None:
    for type in CONTRACT:
        versions = [entry.version for entry in ENTRIES if entry.type == type]
        newest = latest(type)
        assert versions == list(range(1, len(versions) + 1))
        assert newest is not None and newest.version == versions[-1]
    assert latest("filestore.node.painted") is None


@each_schema
def test_a_schema_is_valid_closed_and_explained(entry: CatalogueEntry) -> None:
    jsonschema_rs.meta.validate(entry.schema)
    assert entry.schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert "$ref" not in str(entry.schema)
    assert entry.schema["title"] and entry.schema["description"] and entry.schema["examples"]
    for part in objects(entry.schema):
        assert part["additionalProperties"] is False
        for name, field in part["properties"].items():
            assert field["description"].endswith("."), name
            assert field["type"] != "array" or field["maxItems"] > 0, name


@each_example
def test_an_example_is_valid_and_every_required_field_is_needed(
    entry: CatalogueEntry, example: dict[str, Any]
) -> None:
    check = validator(entry.schema)
    check.validate(example)
    for name in entry.schema["required"]:
        assert not check.is_valid({k: v for k, v in example.items() if k != name}), name
    assert not check.is_valid({**example, "colour": "green"})


@each_example
def test_a_value_of_the_wrong_kind_is_refused(
    entry: CatalogueEntry, example: dict[str, Any]
) -> None:
    check = validator(entry.schema)
    for name in example:
        assert not check.is_valid({**example, name: None}), name
        field = entry.schema["properties"][name]
        if {"enum", "format", "pattern"} & field.keys():
            assert not check.is_valid({**example, name: "purple"}), name
        if "minimum" in field:
            assert not check.is_valid({**example, name: -1}), name


@each_example
def test_a_model_gives_back_the_json_it_was_built_from(
    entry: CatalogueEntry, example: dict[str, Any]
) -> None:
    model = models()[entry.type]
    assert build(model, example).to_json() == example


def test_every_type_has_a_model_of_its_latest_version() -> None:
    assert set(models()) == set(CONTRACT)
    for type, model in models().items():
        newest = latest(type)
        assert newest is not None
        assert model.SCHEMA_VERSION == newest.version
        assert {field.name for field in fields(model)} == {*map(snake, newest.schema["properties"])}


def closed_partition(start: datetime) -> TimestorePartitionClosed:
    return TimestorePartitionClosed(
        dataset="weather",
        partition="day=2026-11-14",
        from_=start,
        to=datetime.fromisoformat("2026-11-15T00:00:00Z"),
        rows=1,
        bytes=1,
        files=1,
        table_version=1,
        revision=0,
    )


def test_a_time_in_another_zone_is_told_in_utc() -> None:
    start = datetime(2026, 11, 14, 1, tzinfo=timezone(timedelta(hours=1)))
    assert closed_partition(start).to_json()["from"] == "2026-11-14T00:00:00Z"


def test_a_time_without_zone_is_refused() -> None:
    with pytest.raises(InvalidEvent, match="/payload/from: the time has no zone"):
        closed_partition(datetime(2026, 11, 14)).to_json()


def test_generated_files_are_up_to_date() -> None:
    generator = runpy.run_path(str(ROOT / "tools" / "generate_payloads.py"))
    for path, text in generator["rendered"]().items():
        assert path.read_bytes() == text.encode(), f"{path.name} is stale; run `make generate`"


DRIFT = """\
from tristore.events.payloads import FilestoreDriftDetected

FilestoreDriftDetected({})
"""
RIGHT = 'mount="m", path="in/f7.csv", reason="modified", journal_id=7'
# An argument list, and what the type checker must say about it.
WRONG = {
    'mount="m", path="in/f7.csv", reason="modified"': 'Missing named argument "journal_id"',
    f'{RIGHT}, colour="green"': 'Unexpected keyword argument "colour"',
    RIGHT.replace("modified", "painted"): 'Argument "reason"',
    RIGHT.replace("journal_id=7", 'journal_id="7"'): 'Argument "journal_id"',
}


def test_a_type_checker_finds_a_wrong_or_missing_field(tmp_path: Path) -> None:
    snippets = {f"wrong{n}.py": arguments for n, arguments in enumerate(WRONG)}
    for name, arguments in {"right.py": RIGHT, **snippets}.items():
        (tmp_path / name).write_text(DRIFT.format(arguments), "utf-8")
    found = mypy(tmp_path)
    assert "right.py" not in found
    for name, arguments in snippets.items():
        (line,) = [line for line in found.splitlines() if name in line and "error" in line]
        assert WRONG[arguments] in line


def mypy(folder: Path) -> str:
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--no-pretty"]
    command += ["--cache-dir", str(folder / "cache"), *map(str, sorted(folder.glob("*.py")))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout
