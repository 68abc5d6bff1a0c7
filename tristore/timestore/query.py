"""Read-only SQL over the tables, each query in a locked-down child process of its own.

The caller's side imports neither duckdb nor deltalake; the child (`python -m`, request on
stdin, answer on stdout) does, and is all that a hostile query can bring down.
"""

import asyncio
import json
import resource
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tristore.errors import Forbidden, InvalidRequest, TristoreError, Unavailable
from tristore.timestore import guard
from tristore.timestore.answer import collect

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from tristore.timestore.snapshot import Snapshot

_ERRORS = {kind.__name__: kind for kind in (Forbidden, InvalidRequest, Unavailable)}


@dataclass(frozen=True, slots=True)
class Limits:
    seconds: float = 10
    rows: int = 10_000
    answer_bytes: int = 8 * 2**20
    memory_mb: int = 512
    # Address space: DuckDB's memory, and what threads and libraries reserve without using it.
    address_space_mb: int = 3072


async def run_sql(
    root: str, sql: str, limits: Limits | None = None, only: list[str] | None = None
) -> dict[str, Any]:
    """Runs one SELECT over the newest version of the tables below `root`; tables that are not in
    `only` are as absent."""
    limits = limits or Limits()
    asked = {"root": root, "sql": sql, "limits": asdict(limits), "only": only}
    request = json.dumps(asked).encode()
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", __name__),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        # Our own environment holds passwords.
        env={},
    )
    try:
        async with asyncio.timeout(limits.seconds):
            output, _ = await child.communicate(request)
    except TimeoutError:
        raise Unavailable(
            f"the query ran longer than {limits.seconds:g} s and was stopped; narrow it"
        ) from None
    finally:
        with suppress(ProcessLookupError):
            child.kill()
        code = await child.wait()
    return _unpack(output, code, limits)


def _unpack(output: bytes, code: int, limits: Limits) -> dict[str, Any]:
    if code < 0:
        raise InvalidRequest(
            f"the query needed more than the {limits.memory_mb} MiB a query may use; narrow it"
        )
    if code > 0:
        raise Unavailable("the query could not be run; the reason is in the server's log")
    answer: dict[str, Any] = json.loads(output)
    if "error" in answer:
        raise _ERRORS[answer["error"]](answer["message"])
    return answer


def main() -> None:
    request = json.load(sys.stdin)
    try:
        root, limits = Path(request["root"]), Limits(**request["limits"])
        answer = _answer(root, request["sql"], limits, request["only"])
    except TristoreError as error:
        answer = {"error": type(error).__name__, "message": str(error)}
    sys.stdout.write(json.dumps(answer))


def _answer(root: Path, sql: str, limits: Limits, only: list[str] | None) -> dict[str, Any]:
    import duckdb

    from tristore.timestore import snapshot

    # The wall clock belongs to the caller; this ends a child whose caller was killed.
    resource.setrlimit(resource.RLIMIT_CPU, (int(limits.seconds * 4) + 1,) * 2)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (limits.address_space_mb * 2**20,) * 2)
    with duckdb.connect(config=_settings(limits)) as conn:
        try:
            offered = {name for name in snapshot.names(root) if only is None or name in only}
            wanted = guard.referenced_tables(_parse(conn, sql), offered)
            tables = [snapshot.read(root, name) for name in sorted(wanted)]
            _offer(conn, tables)
            return {**_rows(conn, sql, limits), **_origin(tables)}
        except (duckdb.OutOfMemoryException, MemoryError):
            raise InvalidRequest(
                f"the query needs more than {limits.memory_mb} MiB of memory; narrow it"
            ) from None
        except duckdb.PermissionException:
            raise Forbidden("the query reaches outside of the tables") from None
        except duckdb.IOException:
            raise Unavailable("a file of the table could not be read; try again") from None
        except duckdb.Error as error:
            raise InvalidRequest(_without_paths(str(error), root)) from None


def _settings(limits: Limits) -> dict[str, Any]:
    return {
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "memory_limit": f"{limits.memory_mb}MB",
        "threads": "2",
        "temp_directory": "",
    }


def _parse(conn: "DuckDBPyConnection", sql: str) -> dict[str, Any]:
    statements = conn.extract_statements(sql)
    if len(statements) != 1:
        raise InvalidRequest(f"exactly one statement is expected, not {len(statements)}")
    found = conn.execute("SELECT json_serialize_sql(?::VARCHAR)", [sql]).fetchone()
    tree: dict[str, Any] = json.loads(found[0]) if found else {"error": True}
    if statements[0].type.name != "SELECT" or tree["error"]:
        raise Forbidden(f"only SELECT is allowed, not {statements[0].type.name}")
    return tree


def _offer(conn: "DuckDBPyConnection", tables: "list[Snapshot]") -> None:
    """Makes a view of each table, then shuts every other way to a file."""
    conn.execute("SET TimeZone = 'UTC'")
    conn.execute("SET python_enable_replacements = false")
    files = [file for table in tables for file in table.files]
    conn.execute(f"SET allowed_paths = {_list(files)}")
    for table in tables:
        conn.execute(f'CREATE VIEW "{table.name}" AS {_select(table)}')
    conn.execute("SET enable_external_access = false")
    conn.execute("SET lock_configuration = true")


def _select(table: "Snapshot") -> str:
    if not table.files:
        columns = (f'NULL::{kind} AS "{name}"' for name, kind in table.columns.items())
        return f"SELECT {', '.join(columns)} WHERE false"
    # Left to itself DuckDB would make a DATE of a partition column.
    kinds = ", ".join(f"'{name}': VARCHAR" for name in table.partitions)
    hive = f"hive_partitioning = true, hive_types = {{{kinds}}}"
    return f"SELECT * FROM read_parquet({_list(table.files)}, {hive}, union_by_name = true)"


def _list(texts: list[str]) -> str:
    quoted = ("'" + text.replace("'", "''") + "'" for text in texts)
    return f"[{', '.join(quoted)}]::VARCHAR[]"


def _rows(conn: "DuckDBPyConnection", sql: str, limits: Limits) -> dict[str, Any]:
    result = conn.execute(sql)
    columns = [{"name": name, "type": str(kind)} for name, kind, *_ in result.description or ()]
    rows, truncated = collect(iter(result.fetchone, None), limits.rows, limits.answer_bytes)
    return {"columns": columns, "rows": rows, "truncated": truncated}


def _origin(tables: "list[Snapshot]") -> dict[str, Any]:
    """What the answer rests on; of several tables the one that is furthest behind counts."""
    reached = [table.through or 0 for table in tables]
    oldest = min((table.committed_ms for table in tables), default=None)
    return {
        "tableVersion": {table.name: table.version for table in tables},
        "throughSequence": min(reached, default=None),
        "freshnessMs": None if oldest is None else max(0, int(time.time() * 1000) - oldest),
        "tailTruncated": False,
    }


def _without_paths(message: str, root: Path) -> str:
    return message.replace(str(root), "").strip()


if __name__ == "__main__":
    main()
