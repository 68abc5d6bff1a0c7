"""The log's format: one JSON object a line, whatever a value holds."""

import json
import logging

import pytest

from tristore.observe import JsonFormatter


@pytest.mark.parametrize("value", ["\n[ERROR] forged", "\x1b[2J", "\ud800", 2**80, {"a": "\r\n"}])
def test_any_value_stays_on_its_line(value: object) -> None:
    record = logging.makeLogRecord({"msg": "dead letter", "levelname": "WARNING", "type": value})
    line = JsonFormatter("ingress").format(record)
    assert line.isprintable()
    found = json.loads(line)
    assert (found["message"], found["level"], found["part"]) == (
        "dead letter",
        "warning",
        "ingress",
    )
    assert found["type"] == value
