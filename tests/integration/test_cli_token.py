"""`tristore token`: rights that work, end, and are never shown twice."""

from datetime import UTC, datetime, timedelta

import httpx

from tests.support.command import answer, tristore
from tests.support.database import value
from tests.support.operator import running_api
from tests.support.waiting import wait_until
from tristore.config import Settings


def test_a_token_works_until_it_is_revoked(settings: Settings) -> None:
    made = answer(settings, "token", "create", "ci", "--scope", "events:read", "--expires", "30d")
    with running_api(settings) as url:
        headers = {"Authorization": f"Bearer {made['token']}"}

        def status() -> int:
            return httpx.get(f"{url}/admin/events", headers=headers, trust_env=False).status_code

        assert status() == 200
        (listed,) = answer(settings, "token", "list")["items"]
        assert (listed["name"], listed["state"]) == ("ci", "in use")
        ends = datetime.fromisoformat(listed["expiresAt"]) - datetime.now(UTC)
        assert timedelta(days=29) < ends <= timedelta(days=30)
        assert made["token"] not in tristore(settings, "token", "list").stdout
        assert answer(settings, "token", "revoke", "ci")["id"] == listed["id"]
        wait_until(lambda: status() == 401)
    assert answer(settings, "token", "list")["items"][0]["state"] == "revoked"
    gone = tristore(settings, "token", "revoke", "ci")
    assert (gone.returncode, "no token in use" in gone.stderr) == (1, True)


def test_limits_are_kept_and_nonsense_is_wrong_usage(settings: Settings) -> None:
    made = answer(
        settings,
        *["token", "create", "web", "--scope", "filestore:read", "--scope", "filestore:read"],
        *["--mount", "m", "--mount", "n", "--namespace", "a"],
    )
    assert (made["mounts"], made["namespaces"], made["datasets"]) == (["m", "n"], ["a"], None)
    assert made["scopes"] == ["filestore:read"]
    everything = answer(settings, "token", "create", "root", "--scope", "all")
    assert len(everything["scopes"]) == 13
    for wrong in (
        ["--scope", "events:everything"],
        ["--scope", "events:read", "--mount", "A/../b"],
        ["--scope", "events:read", "--expires", "soon"],
        ["--scope", "events:read", "--expires", "2020-01-01"],
        [],
    ):
        assert tristore(settings, "token", "create", "bad", *wrong).returncode == 2, wrong
    too_long = tristore(settings, "token", "create", "n" * 201, "--scope", "events:read")
    assert (too_long.returncode, "1 to 200" in too_long.stderr) == (2, True)
    assert value(str(settings.database_url), "SELECT count(*) FROM bus.tokens") == 2
    twin = ["token", "create", "web", "--scope", "events:read", "--json"]
    assert tristore(settings, *twin).returncode == 0
    unclear = tristore(settings, "token", "revoke", "web")
    assert (unclear.returncode, "give an id" in unclear.stderr) == (1, True)
