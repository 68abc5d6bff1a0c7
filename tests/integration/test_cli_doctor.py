"""`tristore doctor`: green on a sound platform, and red with the next step on a broken one."""

import json
from pathlib import Path
from typing import Any

import psycopg

from tests.support.command import answer, tristore
from tests.support.database import rows
from tests.support.history import fill
from tests.support.operator import running_api
from tests.support.waiting import wait_until
from tristore.config import Settings


def states(settings: Settings) -> dict[str, dict[str, Any]]:
    done = tristore(settings, "doctor", "--json")
    found = json.loads(done.stdout)
    assert found["ok"] == (done.returncode == 0)
    return {check["name"]: check for check in found["checks"]}


def add_mount(settings: Settings, folder: Path) -> None:
    with psycopg.connect(str(settings.database_url), autocommit=True) as conn:
        conn.execute(
            "INSERT INTO filestore.mounts (name, kind, config, created_by) "
            "VALUES ('m', 'local', jsonb_build_object('rootPath', %s::text), 'test')",
            [str(folder)],
        )


def connected(settings: Settings) -> set[str]:
    found = rows(
        str(settings.database_url), "SELECT application_name AS name FROM pg_stat_activity"
    )
    return {row["name"].removeprefix("tristore-") for row in found}


def test_a_sound_platform_is_well(settings: Settings, tmp_path: Path) -> None:
    fill(str(settings.database_url), 25_000)
    add_mount(settings, tmp_path)
    workers = ["relay", "ingress", "sync", "watch"]
    with running_api(settings, *workers):
        wait_until(lambda: connected(settings) >= set(workers))
        found = answer(settings, "doctor")
        assert found["ok"]
        assert {check["state"] for check in found["checks"]} <= {"ok", "warn"}
        assert len(found["checks"]) >= 10
        named = {check["name"]: check for check in found["checks"]}
        assert (named["sync"]["detail"], named["watch"]["detail"]) == ("connected", "connected")
        assert named["reconcile"]["state"] == "warn"
        assert named["reconcile"]["nextStep"] == "start it: tristore work reconcile"
        shown = tristore(settings, "doctor")
    assert "no gap in the sample" in shown.stdout


def test_what_is_wrong_is_named_with_the_next_step(settings: Settings) -> None:
    fill(str(settings.database_url), 100)
    with psycopg.connect(str(settings.database_url), autocommit=True) as conn:
        conn.execute("DELETE FROM bus.workflow_events WHERE ingress_sequence IN (50, 100)")
        conn.execute(
            "INSERT INTO bus.outbox (event_id, source, body_hash, envelope, state, lease_until)"
            " VALUES ('a', 's', '', '{}', 'enqueued', now() - interval '1 hour')"
        )
        conn.execute(
            "INSERT INTO bus.dead_letters (reason, errors, raw, raw_hash)"
            " VALUES ('expired', '[]', '', '')"
        )
    found = states(settings)
    assert found["log"]["state"] == "fail"
    assert "the head row says 100, the newest event is 99" in found["log"]["detail"]
    assert "2 numbers are missing" in found["log"]["detail"]
    assert found["workers"]["state"] == "fail"
    assert "tristore work" in found["workers"]["nextStep"]
    assert found["sync"]["state"] == "warn"
    assert found["reconcile, watch"]["state"] == "ok"  # nothing to look after
    assert found["leases"]["state"] == "warn"
    assert found["dead letters"]["nextStep"] == "look: tristore dlq list"


def test_servers_that_are_away_are_named(settings: Settings) -> None:
    away = settings.model_copy(
        update={
            "database_url": "postgresql://nobody@127.0.0.1:1/none",
            "redis_url": "redis://127.0.0.1:1",
        }
    )
    found = states(away)
    assert (found["postgres"]["state"], found["redis"]["state"]) == ("fail", "fail")
    assert "TRISTORE_DATABASE_URL" in found["postgres"]["nextStep"]
    assert found["disk"]["state"] in ("ok", "warn")
