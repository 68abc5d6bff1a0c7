"""Runs a plain-SQL migration file inside Alembic's transaction."""

from pathlib import Path

from alembic import op


def run(file: str) -> None:
    sql = Path(__file__).with_name("versions").joinpath(file).read_text("utf-8")
    # The driver's own cursor: SQLAlchemy would read `:name` in the text as a parameter.
    connection = op.get_bind().connection.dbapi_connection
    assert connection is not None
    connection.cursor().execute(sql)
