"""A question that takes too long is ended and refused, and the connection is as good as before."""

import pytest

from tristore.db.deadline import connection_within
from tristore.db.pool import make_pool
from tristore.errors import TooBroad


async def test_a_slow_statement_is_refused_with_what_to_do(database_url: str) -> None:
    async with make_pool(database_url, name="test", max_size=1) as pool:
        with pytest.raises(TooBroad, match="narrow it"):
            async with connection_within(pool, 0.05) as conn:
                await conn.execute("SELECT pg_sleep(30)")
        async with pool.connection() as conn:
            cursor = await conn.execute("SHOW statement_timeout")
            assert await cursor.fetchone() == ("0",)
