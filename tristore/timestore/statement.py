"""The values of a statement that is being compiled: each has a number in it."""

from typing import Any


class Statement:
    """Positions are numbered, so pieces of SQL may be put together in any order."""

    def __init__(self) -> None:
        self.values: list[Any] = []

    def bind(self, value: Any) -> str:
        self.values.append(value)
        return f"${len(self.values)}"
