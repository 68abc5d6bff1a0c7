"""Writes the typed payloads and the field tables of docs/events.md from the event schemas."""

import json
import keyword
import re
from pathlib import Path
from typing import Any

from tristore.events.catalogue import CatalogueEntry, entries, latest

ROOT = Path(__file__).resolve().parent.parent
PAYLOADS = ROOT / "tristore" / "events" / "payloads.py"
DOCS = ROOT / "docs" / "events.md"
BEGIN, END = "<!-- catalogue:begin -->", "<!-- catalogue:end -->"
WIDTH = 100

HEADER = '''\
"""The payload of each event type of the catalogue, as a class that type checkers understand.

Generated from tristore/events/schemas by tools/generate_payloads.py; do not edit.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Literal

from tristore.events.payload import JsonObject, Payload
'''

Schema = dict[str, Any]


def main() -> None:
    for path, text in rendered().items():
        path.write_text(text, "utf-8")


def rendered() -> dict[Path, str]:
    """What each generated file should hold; docs keep what is written outside the markers."""
    newest = newest_entries()
    head, rest = DOCS.read_text("utf-8").split(BEGIN)
    tail = rest.split(END)[1]
    docs = f"{head}{BEGIN}\n{catalogue_section(newest)}{END}{tail}"
    return {PAYLOADS: PayloadsModule().text(newest), DOCS: docs}


def newest_entries() -> list[CatalogueEntry]:
    return [entry for entry in entries() if entry is latest(entry.type)]


class PayloadsModule:
    """The text of payloads.py; classes and enums that schemas share are written once."""

    def __init__(self) -> None:
        self.aliases: dict[str, str] = {}
        self.parts: dict[str, str] = {}

    def text(self, newest: list[CatalogueEntry]) -> str:
        events = [self.event(entry) for entry in newest]
        named = "\n".join(sorted(self.aliases.values()))
        return "\n\n".join([f"{HEADER}\n{named}\n", *self.parts.values(), *events])

    def event(self, entry: CatalogueEntry) -> str:
        name = "".join(word.capitalize() for word in re.split(r"\W", entry.type))
        constants = (
            f'    TYPE: ClassVar[str] = "{entry.type}"\n'
            f"    SCHEMA_VERSION: ClassVar[int] = {entry.version}\n\n"
        )
        return self.model(f"{name}(Payload)", entry.schema, constants)

    def model(self, head: str, schema: Schema, constants: str = "") -> str:
        lines = []
        for key, field in schema["properties"].items():
            default = "" if key in schema["required"] else " | None = None"
            lines.append(f"    {field_name(key)}: {self.type(field)}{default}\n")
        return (
            "@dataclass(frozen=True, slots=True, kw_only=True)\n"
            f"class {head}:\n{docstring(schema['description'])}\n{constants}{''.join(lines)}"
        )

    def type(self, field: Schema) -> str:
        if "enum" in field:
            return self.literal(field)
        if field["type"] == "array":
            return f"tuple[{self.type(field['items'])}, ...]"
        if field["type"] == "object":
            part = self.model(f"{field['title']}(JsonObject)", field)
            return define(self.parts, field["title"], part)
        if field.get("format") == "date-time":
            return "datetime"
        return {"string": "str", "integer": "int"}[field["type"]]

    def literal(self, field: Schema) -> str:
        values = [f'"{value}"' for value in field["enum"]]
        if "title" not in field:
            return f"Literal[{', '.join(values)}]"
        line = f"{field['title']} = Literal[{', '.join(values)}]"
        if len(line) > WIDTH:
            inner = "".join(f"    {value},\n" for value in values)
            line = f"{field['title']} = Literal[\n{inner}]"
        return define(self.aliases, field["title"], line)


def define(names: dict[str, str], name: str, text: str) -> str:
    """One title, one meaning: the same one in two schemas must say the same."""
    if names.setdefault(name, text) != text:
        raise SystemExit(f"two schemas define {name} differently; give one of them another title")
    return name


def docstring(text: str) -> str:
    line = f'    """{text}"""\n'
    if len(line) <= WIDTH:
        return line
    first, rest = text.split("; ", 1)
    return f'    """{first}.\n\n    {rest[0].upper()}{rest[1:]}\n    """\n'


def field_name(key: str) -> str:
    name = re.sub(r"[A-Z]", lambda capital: f"_{capital[0].lower()}", key)
    return f"{name}_" if keyword.iskeyword(name) else name


def catalogue_section(newest: list[CatalogueEntry]) -> str:
    return "".join(event_section(entry) for entry in newest)


def event_section(entry: CatalogueEntry) -> str:
    rows = "".join(field_rows(entry.schema, ""))
    example = json.dumps(entry.schema["examples"][0], indent=2, ensure_ascii=False)
    return (
        f"\n### `{entry.type}`\n\n{entry.schema['description']} Version {entry.version}.\n\n"
        f"| field | type | | meaning |\n|---|---|---|---|\n{rows}\n"
        f"```json\n{example}\n```\n"
    )


def field_rows(schema: Schema, prefix: str) -> list[str]:
    rows = []
    for key, field in schema["properties"].items():
        need = "required" if key in schema["required"] else "optional"
        label = f"{prefix}{key}"
        rows.append(f"| `{label}` | {json_type(field)} | {need} | {field['description']} |\n")
        if field.get("items", {}).get("type") == "object":
            rows += field_rows(field["items"], f"{label}[].")
    return rows


def json_type(field: Schema) -> str:
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if field["type"] == "array":
        return f"array of {json_type(field['items'])}, at most {field['maxItems']}"
    if field.get("format") == "date-time":
        return "time"
    if "pattern" in field:
        return f"string like `{field['pattern']}`"
    if "maxLength" in field:
        return f"string, at most {field['maxLength']} characters"
    return f"{field['type']}, at least {field['minimum']}" if "minimum" in field else field["type"]


if __name__ == "__main__":
    main()
