"""Filestore activity: an event with a number that is none no longer stops every reader."""

from tristore.db.migrations import sql

revision = "0008_activity_numbers"
down_revision = "0007_dataset_keys"


def upgrade() -> None:
    sql.run("0008_activity_numbers.sql")
