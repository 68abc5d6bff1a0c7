"""Postgres: connections, named queries, migrations."""
