"""The metastore: namespaces with rules, records, and every version of them."""

from tristore.db.migrations import sql

revision = "0004_metastore"
down_revision = "0003_filestore"


def upgrade() -> None:
    sql.run("0004_metastore.sql")
