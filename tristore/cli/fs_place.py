"""`mount:path`, as the command line names what lies in the filestore."""

from dataclasses import dataclass
from typing import Annotated
from urllib.parse import quote

import typer

Named = Annotated[str, typer.Argument(metavar="MOUNT:PATH", help="As in media:2026/report.pdf")]


@dataclass(frozen=True, slots=True)
class Place:
    """The root of a mount has an empty path."""

    mount: str
    path: str

    @classmethod
    def parse(cls, text: str) -> "Place":
        mount, colon, path = text.partition(":")
        if not (mount and colon):
            raise typer.BadParameter(f"{text!r} names no mount; write it as MOUNT:PATH")
        return cls(mount, path.rstrip("/"))

    @classmethod
    def of_file(cls, text: str, name: str) -> "Place":
        """Where a file of that name goes: into a place that ends as a folder does."""
        found = cls.parse(text)
        return found.child(name) if text.endswith((":", "/")) else found

    def child(self, name: str) -> "Place":
        return Place(self.mount, f"{self.path}/{name}" if self.path else name)

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2] or self.mount

    @property
    def url(self) -> str:
        return f"/filestore/v1/files/{quote(self.mount, safe='')}/{quote(self.path)}"

    def __str__(self) -> str:
        return f"{self.mount}:{self.path}"
