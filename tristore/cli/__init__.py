"""The command line: one file per noun; parse, call, print."""

import sys

import typer

from tristore import __version__
from tristore.cli import (
    dlq,
    doctor,
    events,
    fs,
    meta,
    migrate,
    pipeline,
    restored,
    schemas,
    serve,
    status,
    token,
    ts,
    up,
    work,
)
from tristore.errors import TristoreError

app = typer.Typer(
    name="tristore",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("up")(up.up)
app.command("status")(status.status)
app.command("serve")(serve.serve)
app.command("work")(work.work)
app.command("migrate")(migrate.migrate)
app.command("doctor")(doctor.doctor)
app.command("restored")(restored.restored)
app.add_typer(events.app, name="events")
app.add_typer(dlq.app, name="dlq")
app.add_typer(schemas.app, name="schemas")
app.add_typer(fs.app, name="fs")
app.add_typer(meta.app, name="meta")
app.add_typer(ts.app, name="ts")
app.add_typer(token.app, name="token")
app.add_typer(pipeline.app, name="pipeline")


@app.command("version")
def version() -> None:
    """Print the version."""
    print(__version__)


def main() -> None:
    try:
        app()
    except TristoreError as error:
        print(f"tristore: {error}", file=sys.stderr)
        sys.exit(1)
