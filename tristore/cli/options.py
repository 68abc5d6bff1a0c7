"""Options and arguments that several commands take, each written once."""

from pathlib import Path
from typing import Annotated

import typer

Url = Annotated[str | None, typer.Option("--url", help="Where the platform is.")]
Token = Annotated[str | None, typer.Option("--token", help="Bearer token.")]
DataDir = Annotated[
    Path | None, typer.Option("--data-dir", help="Data folder of a platform that runs here.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
OwnFolder = Annotated[
    Path | None, typer.Option("--data-dir", help="Folder of the embedded servers' data.")
]

Limit = Annotated[int, typer.Option("--limit", min=1, max=1000)]
Cursor = Annotated[str | None, typer.Option("--cursor", help="Go on from here.")]
OnlyType = Annotated[str | None, typer.Option("--type", help="Only this type, or prefix.*")]

Slug = Annotated[str, typer.Argument(help="The dataset.")]
From = Annotated[str | None, typer.Option("--from", help="At or after this time.")]
To = Annotated[str | None, typer.Option("--to", help="Before this time.")]
RowsFrom = Annotated[str | None, typer.Option("--from", help="Rows at or after this time.")]
RowsTo = Annotated[str | None, typer.Option("--to", help="Rows before this time.")]
ExportFormat = Annotated[str, typer.Option("--format", help="parquet, csv or delta.")]
