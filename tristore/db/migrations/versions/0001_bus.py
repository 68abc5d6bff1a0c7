"""The bus: the ordered log, its head row, outbox, dead letters, tokens."""

from tristore.db.migrations import sql

revision = "0001_bus"
down_revision = None


def upgrade() -> None:
    sql.run("0001_bus.sql")
