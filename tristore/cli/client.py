"""How a client command finds the platform and speaks to it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tristore import errors
from tristore.config import Settings
from tristore.local import run_file

if TYPE_CHECKING:
    import httpx

_BY_STATUS: dict[int, type[errors.TristoreError]] = {
    401: errors.Unauthenticated,
    403: errors.Forbidden,
    404: errors.NotFound,
    413: errors.TooLarge,
    503: errors.Unavailable,
}
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_SECONDS, _CONNECT_SECONDS = 60.0, 5.0


@dataclass(frozen=True, slots=True)
class Client:
    """Answers are parsed JSON; a refusal is raised with the sentence the platform gave."""

    url: str
    token: str

    @classmethod
    def find(
        cls, url: str | None = None, token: str | None = None, data_dir: Path | None = None
    ) -> "Client":
        """By what was typed, else the settings, else the platform that runs on the data folder.

        The folder's token is for the folder's platform: it is never sent to another address.
        """
        settings = Settings()
        typed = url or (None if data_dir else settings.url)
        known = token or settings.token
        if typed is None:
            run = running((data_dir or settings.data_dir).absolute())
            typed, known = run.url, token or run.token_file.read_text().strip()
        if known is None:
            raise errors.Unauthenticated("no token: give --token or set TRISTORE_TOKEN")
        return cls(typed.rstrip("/"), known)

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    @property
    def websocket_url(self) -> str:
        return "ws" + self.url.removeprefix("http")

    def get(self, path: str, **params: Any) -> Any:
        return self.send("GET", path, params=_given(params))

    def post(self, path: str, body: Any = None, **params: Any) -> Any:
        return self.send("POST", path, params=_given(params), json=body)

    def delete(self, path: str, **params: Any) -> Any:
        return self.send("DELETE", path, params=_given(params))

    def pages(self, path: str, **params: Any) -> Iterator[dict[str, Any]]:
        """Every page of a list, one after the other."""
        cursor: str | None = None
        while True:
            page = self.get(path, **params, cursor=cursor)
            yield page
            cursor = page.get("nextCursor")
            if cursor is None:
                return

    def send(self, method: str, path: str, **request: Any) -> Any:
        with self.http() as client:
            return read_answer(client.request(method, path, **request))

    @contextmanager
    def http(self) -> "Iterator[httpx.Client]":
        """For what streams; a platform that does not answer is told as an error of ours."""
        # Imported here, so that commands which ask nobody do not pay for it.
        import httpx

        # A proxy from the environment is for other machines.
        outside = urlsplit(self.url).hostname not in _LOOPBACK
        try:
            with httpx.Client(
                base_url=self.url,
                headers=self.headers,
                timeout=httpx.Timeout(_SECONDS, connect=_CONNECT_SECONDS),
                trust_env=outside,
            ) as client:
                yield client
        except (httpx.TransportError, httpx.InvalidURL) as error:
            raise errors.Unavailable(
                f"no answer from {self.url} ({type(error).__name__}); is the platform running?"
            ) from None


def running(folder: Path) -> run_file.Run:
    run = run_file.read(folder)
    if run is None:
        raise errors.NotFound(
            f"no platform runs on {folder}; start one with `tristore up`, "
            "or give --url and --token (TRISTORE_URL, TRISTORE_TOKEN)"
        )
    return run


def _given(params: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in params.items() if value is not None}


def read_answer(answer: "httpx.Response") -> Any:
    try:
        body = answer.json() if answer.content else None
    except ValueError:
        body = None
    if answer.is_success:
        return body
    problem = body if isinstance(body, dict) else {}
    kind = _BY_STATUS.get(answer.status_code, errors.Terminal)
    raise kind(_sentence(problem) or f"the platform answered {answer.status_code}")


def _sentence(problem: dict[str, Any]) -> str:
    """One line: the detail, and each violation where the detail does not hold them already."""
    detail = str(problem.get("detail") or problem.get("title") or "")
    listed = [f"{e.get('path') or '/'}: {e.get('message')}" for e in problem.get("errors", [])]
    return "; ".join([detail, *(line for line in listed if line not in detail)])
