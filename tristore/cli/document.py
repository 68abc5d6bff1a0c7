"""JSON from the command line, a file or stdin."""

import json
import sys
from pathlib import Path
from typing import Any

import typer


def document(text: str, name: str) -> Any:
    try:
        if text == "-":
            text = sys.stdin.read()
        elif text.startswith("@"):
            text = Path(text[1:]).read_text("utf-8")
        return json.loads(text)
    except (OSError, ValueError) as error:
        raise typer.BadParameter(f"--{name} is not readable as JSON: {error}") from None
