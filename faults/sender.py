"""A client that sends rows to two datasets, again if it must, and knows what was acknowledged."""

import httpx

from faults.stage import Stage
from tests.support.api import Api
from tests.support.timestore import ALL, BASE, Set
from tristore.timestore.place import tables_place

NOON = "2026-11-15T12:00:00Z"
_NOT_IN = "SELECT count(*) FROM timestore.ingest_batches WHERE state <> 'committed'"
_FOLDER = "SELECT folder FROM timestore.datasets WHERE slug = %s"


class Sender:
    """Each row has a number of its own, which no other row has."""

    def __init__(self, stage: Stage, api: Api, rows: int) -> None:
        self._stage = stage
        self._rows = rows
        # A key is known by its token, so the token outlives the API.
        self._headers = api.bearer(*ALL)
        with self.client(api) as http:
            self._slugs = [Set.make(http).slug for _ in range(2)]
        self._acknowledged: dict[str, set[int]] = {slug: set() for slug in self._slugs}

    def client(self, api: Api) -> httpx.Client:
        return httpx.Client(base_url=api.url, headers=self._headers, timeout=60)

    def send(self, api: Api, requests: range) -> bool:
        """False if the API went away meanwhile."""
        try:
            with self.client(api) as http:
                for number in requests:
                    self._post(http, number)
        except httpx.TransportError:
            return False
        return True

    def check(self) -> int:
        """By what lies in the tables, and by what a query answers; says how many rows there are."""
        assert self._stage.value(_NOT_IN) == 0
        with self._stage.serving() as api, self.client(api) as http:
            for slug, wanted in self._acknowledged.items():
                assert sorted(self._found(slug)) == sorted(wanted)
                asked = {"sql": f"SELECT count(*), count(DISTINCT celsius) FROM {slug}"}
                answer = http.post(f"{BASE}/sql", json=asked)
                assert answer.json()["rows"] == [[len(wanted), len(wanted)]], answer.text
        return sum(map(len, self._acknowledged.values()))

    def _post(self, http: httpx.Client, request: int) -> None:
        slug = self._slugs[request % 2]
        numbers = range(request * self._rows, (request + 1) * self._rows)
        rows = [{"at": NOON, "station": "a", "celsius": float(n)} for n in numbers]
        answer = http.post(
            f"{Set(http, slug).path}/ingest",
            json={"rows": rows},
            headers={"Idempotency-Key": f"request-{request}"},
        )
        assert answer.status_code == 202, answer.text
        self._acknowledged[slug] |= set(numbers)

    def _found(self, slug: str) -> list[int]:
        folder = self._stage.value(_FOLDER, slug)
        table = tables_place(self._stage.settings).child(folder).table().to_pyarrow_table()
        return [int(number) for number in table["celsius"].to_pylist()]
