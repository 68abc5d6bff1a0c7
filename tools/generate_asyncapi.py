"""Writes docs/asyncapi.json from the catalogue; run by `make generate`."""

import json
from pathlib import Path

from tristore.config import EventsSettings
from tristore.events.asyncapi import catalogue, document

TARGET = Path(__file__).parent.parent / "docs" / "asyncapi.json"


def page() -> str:
    made = document(catalogue(), EventsSettings().queue)
    return json.dumps(made, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    TARGET.write_text(page(), "utf-8")
