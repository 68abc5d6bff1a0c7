"""How lists and single things are printed for people."""

from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table


def folding(*names: str) -> Table:
    """A table that folds what is too long and never cuts it: people copy ids and cursors."""
    return Table(*(Column(name, overflow="fold") for name in names))


def of_one() -> Table:
    """Names beside values; folded too, never cut."""
    return Table(Column(), Column(overflow="fold"), show_header=False, box=None)


def cells(row: list[Any]) -> list[str]:
    return [escape("" if cell is None else str(cell)) for cell in row]


def show_page(table: Table, page: dict[str, Any]) -> None:
    Console().print(table)
    if page["nextCursor"]:
        print(f"more: --cursor {page['nextCursor']}")
