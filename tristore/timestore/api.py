"""The timestore over HTTP."""

import asyncio
from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from tristore.auth import requires
from tristore.timestore.query import run_sql
from tristore.tokens import Principal

# Each query is a process of its own; more than this at once would starve the rest of the machine.
_slots = asyncio.Semaphore(4)

router = APIRouter(prefix="/timestore/v1", tags=["timestore"])


class SqlRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")

    sql: str = Field(min_length=1, max_length=100_000)


@router.post("/sql", dependencies=[requires("timestore:read")])
async def sql(request: Request, body: SqlRequest) -> dict[str, Any]:
    """Run one SELECT over the tables the token may read."""
    root = request.app.state.platform.settings.tables_root()
    async with _slots:
        return await run_sql(root, body.sql, only=_own_tables(request.state.principal))


def _own_tables(principal: Principal) -> list[str] | None:
    """The tables tell of every mount and namespace, so a token limited to some of those has only
    the tables it names."""
    if principal.datasets is None and principal.limited:
        return []
    return principal.datasets
