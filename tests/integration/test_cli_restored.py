"""`tristore restored`: positions of the time before count no more, and readers are told so."""

import httpx

from tests.support.command import answer, tristore
from tests.support.database import rows
from tests.support.operator import running_api
from tristore.config import Settings

EPOCHS = """
    SELECT l.epoch::text AS log, i.epoch::text AS ingests
    FROM bus.ingress_head AS l, timestore.ingest_head AS i
"""


def test_a_restore_begins_another_history(settings: Settings) -> None:
    url = str(settings.database_url)
    made = answer(settings, "token", "create", "reader", "--scope", "events:read")
    (before,) = rows(url, EPOCHS)
    refused = tristore(settings, "restored", stdin="n\n")
    assert refused.returncode == 1 and rows(url, EPOCHS) == [before]
    with running_api(settings) as api:
        headers = {"Authorization": f"Bearer {made['token']}"}
        address = f"{api}/v1/subscriptions/mine/next"
        with httpx.Client(headers=headers, trust_env=False) as client:
            assert client.get(address).status_code == 200
            after = answer(settings, "restored", "--yes")
            assert rows(url, EPOCHS) == [after]
            assert not set(before.values()) & set(after.values())
            told = client.get(address)
            assert told.status_code == 409, told.text
