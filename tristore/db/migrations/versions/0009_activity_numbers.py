"""Filestore activity: an event with a number that is none no longer stops every reader."""

from tristore.db.migrations import sql

revision = "0009_activity_numbers"
down_revision = "0008_mount_keys"


def upgrade() -> None:
    sql.run("0009_activity_numbers.sql")
