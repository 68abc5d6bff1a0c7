"""The timestore: the key under which a dataset was asked for."""

from tristore.db.migrations import sql

revision = "0007_dataset_keys"
down_revision = "0006_filestore_steps"


def upgrade() -> None:
    sql.run("0007_dataset_keys.sql")
