"""The types of columns a dataset has not had, from the rows that bring them; runs in intake
processes only."""

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tristore.errors import InvalidRows, Violation
from tristore.timestore.chunks import Chunk, fault, place
from tristore.timestore.fitting import fit, nearest
from tristore.timestore.schemas import MAX_COLUMNS, Column, name_fault

_OF_PYTHON = {bool: "boolean", int: "long", float: "double", str: "string"}
# Of texts (CSV): the first type that all of them fit.
_OF_TEXT = ("long", "double", "boolean", "date", "timestamp", "string")


def unknown(chunk: Chunk, known: Iterable[Column]) -> list[str]:
    names = {column.name for column in known}
    return [name for name in chunk.columns if name not in names]


def infer(chunks: Iterable[Chunk], known: Iterable[Column]) -> list[Column]:
    """All rows are looked at: the first whole number may be followed by a broken one. A column in
    which nothing but null was sent is none."""
    columns = [*known]
    found: dict[str, list[str]] = {}
    for chunk in chunks:
        for name in unknown(chunk, columns):
            _refuse_name(name, chunk, len(columns) + len(found))
            kinds = _kinds(chunk, name, found.get(name))
            if kinds is not None:
                found[name] = kinds
    return [Column(name, kinds[0]) for name, kinds in found.items()]


def _refuse_name(name: str, chunk: Chunk, columns: int) -> None:
    path = place(chunk.first, name)
    if reason := name_fault(name):
        raise InvalidRows([Violation(path, reason)])
    if columns >= MAX_COLUMNS * 2:
        raise InvalidRows([Violation(path, f"a dataset has at most {MAX_COLUMNS} columns")])


def _kinds(chunk: Chunk, name: str, before: list[str] | None) -> list[str] | None:
    """What the column can be after this chunk, best first; None while nothing is known."""
    values = chunk.columns[name]
    if isinstance(values, list):
        return _of_python(chunk, name, values, before)
    if values.null_count == len(values):
        return before
    if chunk.text:
        fitting = (kind for kind in before or _OF_TEXT if _fits(chunk, name, kind))
        return list(fitting)
    return _of_arrow(chunk, name, values.type)


def _fits(chunk: Chunk, name: str, kind: str) -> bool:
    # 3.0 is a whole number where a column holds such, but no reason to make one.
    if kind == "long" and pc.any(pc.match_substring(chunk.columns[name], ".")).as_py():
        return False
    return isinstance(fit(chunk, Column(name, kind), 1), pa.Array)


def _of_arrow(chunk: Chunk, name: str, kind: pa.DataType) -> list[str] | None:
    near = nearest(kind)
    if near is None:
        raise fault(place(chunk.first, name), f"{kind} cannot be stored; send text")
    return None if near == "null" else [near]


def _of_python(
    chunk: Chunk, name: str, values: list[Any], before: list[str] | None
) -> list[str] | None:
    known = before[0] if before else None
    for kind in sorted(set(map(type, values)) - {type(None)}, key=lambda k: k.__name__):
        new = _OF_PYTHON.get(kind)
        if new is None:
            raise fault(_place(chunk, name, kind), "arrays and objects cannot be stored; send text")
        if known is not None and {known, new} == {"long", "double"}:
            known = "double"
        elif known not in (None, new):
            message = f"the new column is {known} in other rows; a column has one type"
            raise fault(_place(chunk, name, kind), message)
        else:
            known = new
    return before if known is None else [known]


def _place(chunk: Chunk, name: str, kind: type) -> str:
    row = next(n for n, value in enumerate(chunk.columns[name]) if type(value) is kind)
    return place(chunk.first + row, name)
