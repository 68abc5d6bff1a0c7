"""The epochs: which history the numbers of the log and of staged ingests belong to."""

from tristore.db.pool import Connection
from tristore.db.queries import load

_sql = load("tristore.db", "epochs.sql")


async def renew(conn: Connection) -> dict[str, str]:
    """Numbers given out before count no more: whoever remembers one is told so, or begins again."""
    row = await (await conn.execute(_sql.renew)).fetchone()
    assert row is not None
    return {"log": str(row[0]), "ingests": str(row[1])}
