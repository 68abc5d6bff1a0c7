"""The filestore: mounts, the tracked tree, its journal and what is known to differ."""

from tristore.db.migrations import sql

revision = "0003_filestore"
down_revision = "0002_operations"


def upgrade() -> None:
    sql.run("0003_filestore.sql")
    sql.run("0003_filestore_begin.sql")
