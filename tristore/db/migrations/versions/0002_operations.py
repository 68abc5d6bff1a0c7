"""What operating the bus takes: schemas at run time, cursors, browser sessions, the fate of
dead letters."""

from tristore.db.migrations import sql

revision = "0002_operations"
down_revision = "0001_bus"


def upgrade() -> None:
    sql.run("0002_operations.sql")
