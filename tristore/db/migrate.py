"""Brings a database to the newest schema, one transaction per migration, safe to run twice."""

from pathlib import Path

import psycopg

MIGRATIONS = Path(__file__).parent / "migrations"


def head() -> str:
    """The newest revision: the highest-numbered migration file."""
    return max(p.stem for p in MIGRATIONS.glob("versions/[0-9]*.py"))


def current(database_url: str) -> str | None:
    with psycopg.connect(database_url) as conn:
        if conn.execute("SELECT to_regclass('public.alembic_version')").fetchone() == (None,):
            return None
        row = conn.execute("SELECT version_num FROM public.alembic_version").fetchone()
        return row[0] if row else None


def migrate(database_url: str) -> str:
    """Applies what is missing and returns the revision the database is at."""
    if (found := current(database_url)) == head():
        return found
    # Imported late: Alembic brings SQLAlchemy, which no running part needs.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["database_url"] = database_url
    command.upgrade(config, "head")
    return head()
