"""The rule of dependency: imports point down, and each heavy library has its door."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "tristore"

# Each line may import what stands on it and on the lines below it.
LAYERS = [
    ["cli", "server", "http", "__main__"],
    ["wiring", "subscriptions"],
    ["pipeline"],
    ["filestore", "metastore", "timestore"],
    ["events"],
    ["auth", "credentials", "browser_sessions", "tokens"],
    ["db"],
    ["observe", "problem", "metrics"],
    ["background", "cancellation", "config", "errors", "failpoints", "merge_patch"],
]
RANK = {part: -depth for depth, parts in enumerate(LAYERS) for part in parts}
STORES = set(LAYERS[3])
# The embedded servers stand beside the layers: only the command line starts them.
LOCAL_MAY_IMPORT = {"local", "config", "errors", "db"}
LOCAL_IS_IMPORTED_BY = {"local", "cli"}

# What is imported, by the start of its name: the parts and modules that may.
DOORS = {
    "pyspark": ["pipeline"],
    "deltalake": ["pipeline", "timestore.snapshot", "timestore.place"],
    "deltalake.write_deltalake": ["pipeline"],
    "deltalake.writer": ["pipeline"],
    "deltalake.transaction": ["pipeline"],
    "obstore": ["filestore.bucket", "filestore.multipart", "pipeline", "timestore.staging"],
    "duckdb": ["timestore.query", "timestore.offer"],
    "redis": ["events.queue", "events.bullmq_jobs", "events.consumer", "local.redis"],
    "watchfiles": ["filestore.notices_watchfiles"],
    "bullmq": ["events.queue", "events.bullmq_jobs", "local.redis"],
}
LATE = ("import_module", "__import__")
ENVIRONMENT = {"environ", "environb", "getenv", "getenvb", "putenv", "unsetenv"}


@dataclass
class Module:
    """A module by its name below the package (empty for the package itself)."""

    name: str
    imports: set[str] = field(default_factory=set)
    reads_environment: bool = False

    @property
    def part(self) -> str:
        return self.name.split(".")[0]


def modules(package: Path) -> dict[str, Module]:
    files = {module_name(package, path): path for path in package.rglob("*.py")}
    return {name: examine(name, path, set(files)) for name, path in files.items()}


def module_name(package: Path, path: Path) -> str:
    parts = path.relative_to(package).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def examine(name: str, path: Path, known: set[str]) -> Module:
    found = Module(name)
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    # Every node, so that imports inside functions and type-checking blocks count too.
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        found.imports |= {nearest(target, known) for target in targets(node, package)}
        found.reads_environment |= touches_environment(node)
    return found


def targets(node: ast.AST, package: str) -> Iterator[str]:
    """Full dotted names; `from a import b` may mean the module a.b or a name in a."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = origin(node, package)
        yield from (f"{base}.{alias.name}" for alias in node.names)
    elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(LATE):
        yield from (str(a.value) for a in node.args[:1] if isinstance(a, ast.Constant))


def origin(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    parts = ["tristore", *filter(None, package.split("."))]
    return ".".join([*parts[: len(parts) - node.level + 1], *filter(None, [node.module])])


def nearest(target: str, known: set[str]) -> str:
    """A module of ours as `tristore:name`, without what is taken from it; others as they are."""
    top, _, rest = target.partition(".")
    if top != "tristore":
        return target
    while rest and rest not in known:
        rest = rest.rpartition(".")[0]
    return f"tristore:{rest}"


def touches_environment(node: ast.AST) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.module == "os" and bool(ENVIRONMENT & {a.name for a in node.names})
    return isinstance(node, ast.Attribute) and ast.unparse(node) in {f"os.{n}" for n in ENVIRONMENT}


def ours(module: Module) -> set[str]:
    return {t.removeprefix("tristore:") for t in module.imports if t.startswith("tristore:")}


def unplaced(found: dict[str, Module]) -> list[str]:
    parts = {module.part for module in found.values()}
    return sorted(parts - RANK.keys() - {"", "local"})


def layer_violations(found: dict[str, Module]) -> list[str]:
    return sorted(
        f"{module.name or 'tristore'} imports {target}"
        for module in found.values()
        for target in ours(module)
        if not allowed(module.part, target.split(".")[0])
    )


def allowed(part: str, target: str) -> bool:
    if target == "":  # the version stands in the package itself
        return True
    if part == "":  # the public names: the bus's, and nothing above it
        return RANK.get(target, 1) <= RANK["events"]
    if "local" in (part, target):
        return target in LOCAL_MAY_IMPORT if part == "local" else part in LOCAL_IS_IMPORTED_BY
    if part in STORES and target in STORES:
        return part == target
    return RANK.get(target, 1) <= RANK.get(part, 0)


def door_violations(found: dict[str, Module]) -> list[str]:
    return sorted(
        f"{module.name} imports {library}"
        for module in found.values()
        for library, doors in DOORS.items()
        if any(within(target, library) for target in module.imports)
        and not any(within(module.name, door) for door in doors)
    )


def within(name: str, start: str) -> bool:
    return f"{name}.".startswith(f"{start}.")


def environment_readers(found: dict[str, Module]) -> list[str]:
    return sorted(m.name for m in found.values() if m.reads_environment and m.name != "config")


def cycle(found: dict[str, Module]) -> list[str]:
    graph = {name: ours(module) - {name} for name, module in found.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


@pytest.fixture(scope="module")
def tristore() -> dict[str, Module]:
    return modules(PACKAGE)


def test_every_part_has_its_place(tristore: dict[str, Module]) -> None:
    assert {"config", "errors", "events.payloads"} <= tristore.keys()
    assert unplaced(tristore) == []


def test_imports_point_down(tristore: dict[str, Module]) -> None:
    assert layer_violations(tristore) == []


def test_a_heavy_library_is_imported_only_at_its_door(tristore: dict[str, Module]) -> None:
    assert door_violations(tristore) == []


def test_only_config_reads_the_environment(tristore: dict[str, Module]) -> None:
    assert environment_readers(tristore) == []


def test_no_import_cycle(tristore: dict[str, Module]) -> None:
    assert cycle(tristore) == []


@pytest.mark.parametrize(
    ("file", "source", "violation"),
    [
        ("events/log.py", "from tristore.filestore import store", "events.log imports filestore"),
        ("events/log.py", "from tristore import wiring", "events.log imports wiring"),
        ("filestore/a.py", "import tristore.metastore", "filestore.a imports metastore"),
        ("filestore/a.py", "from ..metastore import b", "filestore.a imports metastore"),
        ("db/a.py", "def f():\n    import tristore.events", "db.a imports events"),
        ("db/a.py", "import_module('tristore.auth')", "db.a imports auth"),
        ("local/a.py", "from tristore.events import log", "local.a imports events"),
        ("wiring.py", "from tristore.local import redis", "wiring imports local"),
        ("__init__.py", "from tristore.cli import main", "tristore imports cli"),
        ("timestore/a.py", "from pyspark.sql import types", "timestore.a imports pyspark"),
        ("timestore/a.py", "import deltalake", "timestore.a imports deltalake"),
        (
            "timestore/snapshot.py",
            "from deltalake import write_deltalake",
            "timestore.snapshot imports deltalake.write_deltalake",
        ),
        ("timestore/a.py", "import duckdb", "timestore.a imports duckdb"),
        ("pipeline/a.py", "def f():\n    from redis import asyncio", "pipeline.a imports redis"),
        ("queue/a.py", "import redis", "queue is nowhere"),
        ("db/a.py", "import os\nos.environ['HOME']", "db.a reads the environment"),
        ("db/a.py", "from os import getenv", "db.a reads the environment"),
        ("db/a.py", "from tristore.db import b", "db.a -> db.b -> db.a"),
    ],
)
def test_a_violation_is_found(tmp_path: Path, file: str, source: str, violation: str) -> None:
    package = tmp_path / "tristore"
    names = ["events", "filestore", "metastore", "auth", "local", "cli"]
    made = {f"{name}/__init__.py": "" for name in names} | {"wiring.py": ""}
    made["db/b.py"] = "import tristore.db.a"
    for name, text in {**made, "db/a.py": "", file: source}.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text, "utf-8")
    assert violation in complaints(modules(package))


def complaints(found: dict[str, Module]) -> list[str]:
    if nowhere := unplaced(found):
        return [f"{part} is nowhere" for part in nowhere]
    circle = cycle(found)
    start = circle.index(min(circle)) if circle else 0
    readers = [f"{name} reads the environment" for name in environment_readers(found)]
    arrows = " -> ".join([*circle[start:-1], *circle[:start], min(circle)]) if circle else ""
    return [*layer_violations(found), *door_violations(found), *readers, arrows]
