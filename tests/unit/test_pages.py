"""What the pages name is there: links, files, commands with their options, settings, metrics."""

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

from tristore.cli import app
from tristore.http.meters import Meters

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
SOURCES = ("tristore", "tests", "faults", "bench", "demo", "tools", "deploy", "examples", "docs")
_LINK = re.compile(r"\]\((?!https?:)([^)\s#]*)#?([^)\s]*)\)")
_FILE = re.compile(r"`([\w./-]+\.(?:py|sql|md|yml|mjs))`")
_FENCED = re.compile(r"```(\w*)\n(.*?)```", re.S)
_TYPED = re.compile(r"(?:^|\s|\$ |/)(tristore [a-z].*)")


@cache
def _files() -> frozenset[str]:
    found = (path for source in SOURCES for path in (ROOT / source).rglob("*.*"))
    return frozenset(str(path.relative_to(ROOT)) for path in found)


def _anchors(page: Path) -> set[str]:
    heads = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def _commands(text: str) -> Iterator[list[str]]:
    """Every command line, as words; what is optional counts as given."""
    text = text.replace("\\\n", " ")
    blocks = [block for language, block in _FENCED.findall(text) if language in ("", "sh")]
    lines = "".join(blocks).splitlines()
    typed = [match[1] for line in lines if (match := _TYPED.search(line))]
    named = re.findall(r"`(tristore [a-z][^`]*)`", _FENCED.sub("", text))
    for command in typed + named:
        yield shlex.split(re.sub(r"[\[\]]", "", command), comments=True)[1:]


def _unknown(words: list[str], command: Any) -> list[str]:
    """Subcommands and options that are not there."""
    subcommands = getattr(command, "commands", None)
    if subcommands and words:
        names = words[0].split("|")
        known = [subcommands[name] for name in names if name in subcommands]
        if len(known) < len(names):
            return [words[0]]
        return [unknown for each in known for unknown in _unknown(words[1:], each)]
    options = {option for each in command.params for option in each.opts + each.secondary_opts}
    return [word for word in words if re.match(r"--?[a-z]", word) and word not in options]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for path, anchor in _LINK.findall(page.read_text("utf-8")):
        target = page.parent / path if path else page
        assert target.exists(), path
        assert not anchor or anchor in _anchors(target), f"{path}#{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_and_settings_that_are_named_exist(page: Path) -> None:
    text = page.read_text("utf-8")
    for name in _FILE.findall(text):
        known = any(file.endswith(f"/{name}") for file in _files())
        assert known or (ROOT / name).exists(), name
    settings = (ROOT / "docs/settings.md").read_text("utf-8")
    for name in re.findall(r"TRISTORE_\w*[A-Z]\b", text):
        assert name in settings, name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_can_be_typed_as_they_are_shown(page: Path) -> None:
    command = typer.main.get_command(app)
    for words in _commands(page.read_text("utf-8")):
        assert _unknown(words, command) == [], words


def test_every_metric_is_explained() -> None:
    page = (ROOT / "docs/operations.md").read_text("utf-8")
    served = {family.name for family in Meters().families()}
    assert served <= set(re.findall(r"tristore_\w+", page))
    alerts = (ROOT / "deploy/alerts.yml").read_text("utf-8")
    assert {name.removesuffix("_bucket") for name in re.findall(r"tristore_\w+", alerts)} <= served
