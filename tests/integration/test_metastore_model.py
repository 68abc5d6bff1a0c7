"""The metastore against a plain model of it: records, versions, audit rows, events, searches."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import httpx
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from tests.support.api import Api, own_api
from tests.support.metastore import ALL, BASE, Meta, new_namespace
from tristore.merge_patch import merged
from tristore.metastore.model import same_json

KEYS = st.sampled_from(["a", "b", "é/ c"])
VALUES = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([1.5, "x", "\u20ac", [1]])
METADATA = st.dictionaries(
    st.sampled_from(["n", "m", "o"]),
    VALUES | st.dictionaries(st.sampled_from(["p", "q"]), VALUES, max_size=2),
    max_size=3,
)
TAGS = st.lists(st.sampled_from(["t1", "t2", "t3"]), max_size=3)
OWNERS = st.sampled_from([None, "ops", "dev"])
# Which version a caller names: none, the one that is, one that was, or any there is.
CONDITIONS = st.sampled_from(["none", "none", "right", "wrong", "*"])


@dataclass
class Held:
    """One key: its content now, and every version there ever was."""

    metadata: dict[str, Any] = field(default_factory=dict)
    tags: list[str] = field(default_factory=list)
    owner: str | None = None
    there: bool = False
    deleted: bool = False
    version: int = 0
    # Version -> action and content; None once it was purged.
    history: dict[int, tuple[str, Any]] = field(default_factory=dict)
    events: list[tuple[str, int]] = field(default_factory=list)

    @property
    def live(self) -> bool:
        return self.there and not self.deleted

    def content(self) -> tuple[Any, ...]:
        return self.metadata, self.tags, self.owner, self.deleted

    def become(self, action: str, content: tuple[Any, ...]) -> bool:
        """Takes the content over; whether that was a change."""
        if self.there and same_json([*self.content()], [*content]):
            return False
        event = "deleted" if content[3] else "updated" if self.live else "created"
        self.metadata, self.tags, self.owner, self.deleted = content
        self.there, self.version = True, self.version + 1
        self.history[self.version] = (action, content)
        self.events.append((event, self.version))
        return True

    def purge(self) -> None:
        self.version += 1
        self.history = {version: (a, None) for version, (a, _) in self.history.items()}
        self.history[self.version] = ("purge", None)
        self.events.append(("deleted", self.version))
        self.metadata, self.tags, self.owner = {}, [], None
        self.there = self.deleted = False


def found_by_search(meta: Meta, live: dict[str, Held]) -> None:
    """Each live record is found once, by its namespace and by each of its tags."""
    for tag in (None, "t1", "t2", "t3"):
        query: dict[str, Any] = {"namespace": meta.namespace}
        if tag is not None:
            query["filter"] = {"field": "tags", "op": "array_contains", "value": tag}
        answer = meta.http.post(f"{BASE}/records/search", json=query)
        # A namespace without a first record is not there.
        items = [] if answer.status_code == 404 else answer.json()["items"]
        found = sorted(item["key"] for item in items)
        assert found == sorted(k for k, held in live.items() if tag is None or tag in held.tags)


# What else must agree with the model in the end: called with the metastore and the live records.
CHECKS: list[Callable[[Meta, dict[str, Held]], None]] = [found_by_search]


class Metastore(RuleBasedStateMachine):
    api: ClassVar[Api]
    http: ClassVar[httpx.Client]

    def __init__(self) -> None:
        super().__init__()
        self.meta = Meta(self.http, self.api.database, new_namespace())
        self.model: dict[str, Held] = {}

    def held(self, key: str) -> Held:
        return self.model.setdefault(key, Held())

    def matching(self, held: Held, condition: str) -> tuple[dict[str, str], bool]:
        """The header, and whether it holds."""
        if condition == "none":
            return {}, True
        if condition == "*":
            return {"If-Match": "*"}, held.live
        version = held.version + (condition == "wrong")
        return {"If-Match": f'"{version}"'}, held.there and condition == "right"

    def expect(self, answer: httpx.Response, held: Held, *statuses: int) -> None:
        assert answer.status_code in statuses, answer.text
        if answer.status_code < 300 and answer.content:
            assert answer.json()["version"] == held.version

    @rule(key=KEYS, metadata=METADATA, tags=TAGS, owner=OWNERS)
    def create(self, key: str, metadata: Any, tags: list[str], owner: str | None) -> None:
        held = self.held(key)
        answer = self.meta.create(key, metadata=metadata, tags=tags, owner=owner)
        if held.there:
            self.expect(answer, held, 409)
            return
        held.become("create", (metadata, sorted(set(tags)), owner, False))
        self.expect(answer, held, 201)

    @rule(key=KEYS, metadata=METADATA, tags=TAGS, owner=OWNERS, condition=CONDITIONS)
    def put(
        self, key: str, metadata: Any, tags: list[str], owner: str | None, condition: str
    ) -> None:
        held = self.held(key)
        headers, holds = self.matching(held, condition)
        answer = self.meta.put(key, headers, metadata=metadata, tags=tags, owner=owner)
        if not holds:
            self.expect(answer, held, 412)
            return
        action = "restore" if held.deleted else "update" if held.there else "create"
        new = not held.there
        held.become(action, (metadata, sorted(set(tags)), owner, False))
        self.expect(answer, held, 201 if new else 200)

    @rule(key=KEYS, metadata=METADATA, add=TAGS, remove=TAGS, condition=CONDITIONS)
    def patch(
        self, key: str, metadata: Any, add: list[str], remove: list[str], condition: str
    ) -> None:
        held = self.held(key)
        headers, holds = self.matching(held, condition)
        tags = {"add": add, "remove": remove}
        answer = self.meta.patch(key, headers, metadata=metadata, tags=tags)
        if not held.live or not holds:
            self.expect(answer, held, 412 if held.live else 404)
            return
        wanted = sorted((set(held.tags) - set(remove)) | set(add))
        held.become("update", (merged(held.metadata, metadata), wanted, held.owner, False))
        self.expect(answer, held, 200)

    @rule(key=KEYS, condition=CONDITIONS)
    def delete(self, key: str, condition: str) -> None:
        held = self.held(key)
        headers, holds = self.matching(held, condition)
        answer = self.meta.delete(key, headers)
        if not held.live or not holds:
            self.expect(answer, held, 412 if held.live else 404)
            return
        held.become("delete", (held.metadata, held.tags, held.owner, True))
        self.expect(answer, held, 200)

    @rule(key=KEYS, version=st.integers(1, 6), condition=CONDITIONS)
    def restore(self, key: str, version: int, condition: str) -> None:
        held = self.held(key)
        headers, holds = self.matching(held, condition)
        answer = self.meta.restore(key, version, headers)
        _, content = held.history.get(version, ("", None))
        if not held.there or content is None or not holds:
            self.expect(answer, held, *((412,) if held.there and content else (404,)))
            return
        held.become("restore", (*content[:3], False))
        self.expect(answer, held, 200)

    @rule(key=KEYS, condition=st.sampled_from(["right", "wrong", "wrong"]))
    def purge(self, key: str, condition: str) -> None:
        held = self.held(key)
        headers, holds = self.matching(held, condition)
        answer = self.meta.purge(key, headers)
        if not held.there or not holds:
            self.expect(answer, held, 412 if held.there else 404)
            return
        held.purge()
        self.expect(answer, held, 204)

    @rule(key=KEYS)
    def read(self, key: str) -> None:
        held = self.held(key)
        assert (self.meta.get(key).status_code == 200) is held.live
        answer = self.meta.get(key, includeDeleted=True)
        if not held.there:
            assert answer.status_code == 404
            return
        found = answer.json()
        content = [found["metadata"], found["tags"], found["owner"], found["deletedAt"] is not None]
        assert same_json(content, [*held.content()]) and found["version"] == held.version

    @rule(keys=st.lists(KEYS, min_size=1, max_size=4), metadata=METADATA, gone=st.booleans())
    def bulk(self, keys: list[str], metadata: Any, gone: bool) -> None:
        items = [{"op": "upsert", "key": key, "metadata": metadata} for key in keys]
        items += [{"op": "delete", "key": key} for key in keys] if gone else []
        answer = self.meta.bulk(*items, mode="perItem").json()["results"]
        for item, result in zip(items, answer, strict=True):
            held = self.held(str(item["key"]))
            if item["op"] == "upsert":
                action = "restore" if held.deleted else "update" if held.there else "create"
                held.become(action, (metadata, [], None, False))
            elif not held.live:
                assert result["status"] == 404
                continue
            else:
                held.become("delete", (held.metadata, held.tags, held.owner, True))
            assert result["version"] == held.version, result

    def teardown(self) -> None:
        for key, held in self.model.items():
            self.read(key)
            self.compare_audit(key, held)
            told = [(e["type"].rsplit(".")[-1], e["payload"]["version"]) for e in self.events(key)]
            assert told == held.events
        for check in CHECKS:
            check(self.meta, {key: held for key, held in self.model.items() if held.live})

    def events(self, key: str) -> list[dict[str, Any]]:
        return self.meta.events(key)

    def compare_audit(self, key: str, held: Held) -> None:
        if not held.history:
            return
        found = {item["version"]: item for item in self.meta.audit(key, limit=1000)["items"]}
        assert found.keys() == held.history.keys()
        for version, (action, content) in held.history.items():
            assert found[version]["action"] == action
            assert same_json(state(found[version]["after"]), content and [*content])
            _, before = held.history.get(version - 1, ("", None))
            assert same_json(state(found[version]["before"]), before and [*before])


def state(given: Any) -> Any:
    return given and [given["metadata"], given["tags"], given["owner"], given["deleted"]]


@pytest.fixture(scope="module")
def api(server_url: str) -> Iterator[Api]:
    with own_api(server_url, "inline") as api:
        yield api


def test_the_metastore_is_as_the_model_says(api: Api) -> None:
    with httpx.Client(base_url=api.url, headers=api.bearer(*ALL), timeout=30) as client:
        Metastore.api, Metastore.http = api, client
        run_state_machine_as_test(  # type: ignore[no-untyped-call]
            Metastore,
            settings=settings(
                max_examples=25,
                stateful_step_count=25,
                deadline=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
