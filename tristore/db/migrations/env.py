"""Alembic's entry: every migration and its version stamp commit together."""

import psycopg
from alembic import context
from sqlalchemy import create_engine, pool

database_url: str = context.config.attributes["database_url"]
engine = create_engine(
    "postgresql+psycopg://",
    creator=lambda: psycopg.connect(database_url),
    poolclass=pool.NullPool,
)

with engine.connect() as connection:
    # Two platforms starting at once must not both migrate; the second waits, then finds it done.
    connection.exec_driver_sql("SELECT pg_advisory_lock(7402110911)")
    connection.commit()
    context.configure(connection=connection, transaction_per_migration=True)
    with context.begin_transaction():
        context.run_migrations()
