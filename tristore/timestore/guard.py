"""What a query may name: the tables offered, and functions that show nothing of the host."""

from collections.abc import Iterator
from typing import Any

from tristore.errors import InvalidRequest, SqlForbidden

# Functions that make rows out of their arguments alone.
_TABLE_FUNCTIONS = {"range", "generate_series", "unnest", "json_each", "json_tree", "repeat_row"}
_FORBIDDEN = {"current_setting", "getenv", "getvariable", "write_log", "which_secret"}
_CATALOGUE = ("duckdb_", "pragma_", "pg_", "sqlite_")
_FORBIDDEN_PREFIXES = (*_CATALOGUE, "read_", "json_execute_", "json_serialize_")


def referenced_tables(tree: dict[str, Any], offered: set[str]) -> set[str]:
    """Walks the syntax tree DuckDB made of the query; refuses what it may not name."""
    nodes = list(_nodes(tree))
    inner = {name.lower() for node in nodes for name in _cte_names(node)}
    # Seen from outside of its WITH, such a name would be DuckDB's own catalogue.
    if any(name.startswith(_CATALOGUE) for name in inner):
        raise SqlForbidden("a WITH name must not begin like a catalogue table")
    tables: set[str] = set()
    for node in nodes:
        _refuse_function(node)
        if node.get("type") == "SHOW_REF" and node.get("query") is None:
            raise SqlForbidden("SHOW is not allowed; use DESCRIBE and the name of a table")
        if node.get("type") == "BASE_TABLE":
            tables |= _table(node, offered, inner)
    return tables


def _table(node: dict[str, Any], offered: set[str], inner: set[str]) -> set[str]:
    name = str(node["table_name"]).lower()
    if node["schema_name"] or node["catalog_name"]:
        raise SqlForbidden("a table is named without schema or catalogue")
    if name in offered:
        return {name}
    if name in inner:
        return set()
    listed = ", ".join(sorted(offered)) or "none yet"
    raise InvalidRequest(f"there is no table {node['table_name']!r}; the tables are: {listed}")


def _refuse_function(node: dict[str, Any]) -> None:
    if node.get("type") == "TABLE_FUNCTION":
        name = str(node["function"].get("function_name", "")).lower()
        if name not in _TABLE_FUNCTIONS:
            raise SqlForbidden(f"the table function {name} is not allowed")
    name = str(node.get("function_name", "")).lower()
    if name in _FORBIDDEN or name.startswith(_FORBIDDEN_PREFIXES):
        raise SqlForbidden(f"the function {name} is not allowed")


def _cte_names(node: dict[str, Any]) -> Iterator[str]:
    for entry in (node.get("cte_map") or {}).get("map", ()):
        yield str(entry["key"])


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    waiting = [tree]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            yield item
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)
