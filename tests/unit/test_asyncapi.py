"""The AsyncAPI document: as the specification wants it, and true to the catalogue."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema_rs import Draft202012Validator

from tools import generate_asyncapi
from tristore import __version__
from tristore.events.asyncapi import catalogue, document
from tristore.events.catalogue import CatalogueEntry
from tristore.events.envelope import Event

DOCUMENT = document(catalogue(), "the_queue")


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from [value["$ref"]] if isinstance(value.get("$ref"), str) else []
        for item in value.values():
            yield from references(item)
    elif isinstance(value, list):
        for item in value:
            yield from references(item)


def resolve(reference: str) -> Any:
    found: Any = DOCUMENT
    for part in reference.removeprefix("#/").split("/"):
        found = found[part]
    return found


def test_the_page_in_docs_is_up_to_date() -> None:
    assert generate_asyncapi.TARGET.read_text("utf-8") == generate_asyncapi.page()


def test_it_has_what_the_specification_asks_for() -> None:
    assert DOCUMENT["asyncapi"] == "3.0.0"
    assert DOCUMENT["info"]["version"] == __version__
    for operation in DOCUMENT["operations"].values():
        assert operation["action"] in ("send", "receive")
        channel = resolve(operation["channel"]["$ref"])
        for message in operation["messages"]:  # an operation names messages of its own channel
            assert message["$ref"].startswith(operation["channel"]["$ref"] + "/messages/")
            assert message["$ref"].rsplit("/", 1)[1] in channel["messages"]
    for server in DOCUMENT["servers"].values():
        assert {"host", "protocol"} <= server.keys()


def test_every_reference_leads_somewhere() -> None:
    found = [r for r in references(DOCUMENT) if r.startswith("#/")]
    assert len(found) > 50
    for reference in found:
        assert isinstance(resolve(reference), dict)


@pytest.mark.parametrize("entry", catalogue(), ids=lambda entry: entry.type)
def test_an_event_of_the_catalogue_fits_its_message(entry: CatalogueEntry) -> None:
    message = DOCUMENT["components"]["messages"][entry.type]
    schema = {**message["payload"], "components": DOCUMENT["components"]}
    validator = Draft202012Validator(schema, offline=True)
    event = Event.make(entry.type, entry.schema["examples"][0], source="s")
    sent = json.loads(event.dumps())
    validator.validate(sent)
    assert not validator.is_valid({**sent, "payload": {"nonsense": True}})
    assert DOCUMENT["channels"][entry.type]["address"] == f"tristore:events:{entry.type}"
