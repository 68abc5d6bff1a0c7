"""The filestore: the steps of several commands in one commit."""

from tristore.db.migrations import sql

revision = "0006_filestore_steps"
down_revision = "0005_timestore"


def upgrade() -> None:
    sql.run("0006_filestore_steps.sql")
