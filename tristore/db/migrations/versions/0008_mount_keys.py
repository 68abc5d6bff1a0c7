"""The filestore: the key under which a mount was asked for."""

from tristore.db.migrations import sql

revision = "0008_mount_keys"
down_revision = "0007_dataset_keys"


def upgrade() -> None:
    sql.run("0008_mount_keys.sql")
