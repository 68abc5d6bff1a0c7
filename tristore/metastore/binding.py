"""Parameters of a statement that is put together: values are bound, never part of its text."""

from typing import Any

from psycopg import sql


class Binding:
    """Gives each value a place in the statement, and keeps them all for its execution."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    def bind(self, value: Any) -> sql.Placeholder:
        name = f"p{len(self.values)}"
        self.values[name] = value
        return sql.Placeholder(name)


def joined(word: str, parts: list[sql.Composable], empty: str) -> sql.Composable:
    """`(a) word (b) …`, or what stands for none."""
    if not parts:
        return sql.SQL(empty)
    bracketed = [sql.SQL("({})").format(part) for part in parts]
    return sql.SQL(f" {word} ").join(bracketed)
