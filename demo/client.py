"""What the demo asks of the platform over HTTP, with the operator's token."""

from typing import Any

import httpx


class Client:
    def __init__(self, status: dict[str, Any]) -> None:
        self._http = httpx.Client(
            base_url=status["url"],
            headers={"Authorization": f"Bearer {status['token']}", "X-Correlation-Id": "demo"},
            timeout=30,
            trust_env=False,
        )

    def get(self, route: str, **params: Any) -> Any:
        return self._answer(self._http.get(route, params=params))

    def post(self, path: str, body: Any) -> Any:
        return self._answer(self._http.post(path, json=body))

    def patch(self, path: str, body: Any) -> Any:
        return self._answer(self._http.patch(path, json=body))

    def put(self, path: str, content: bytes) -> Any:
        return self._answer(self._http.put(path, content=content))

    def delete(self, path: str) -> Any:
        return self._answer(self._http.delete(path))

    def _answer(self, answer: httpx.Response) -> Any:
        if not answer.is_success:
            raise SystemExit(f"{answer.request.method} {answer.request.url.path}: {answer.text}")
        return answer.json()
