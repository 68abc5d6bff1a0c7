"""The timestore: datasets, staged ingests, partitions, exports, and events as rows."""

from tristore.db.migrations import sql

revision = "0005_timestore"
down_revision = "0004_metastore"


def upgrade() -> None:
    sql.run("0005_timestore.sql")
