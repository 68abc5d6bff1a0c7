"""The few pages a person sees in a browser; everything they load comes from this server."""

import base64
import hashlib
import re
from functools import cache
from importlib.resources import files

from fastapi import APIRouter
from starlette.responses import HTMLResponse, Response

from tristore.auth import ANY_TOKEN, requires

router = APIRouter(include_in_schema=False)

_INLINE = re.compile(r"<(script|style)>(.*?)</\1>", re.DOTALL)
_BASE = "default-src 'none'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
_NEVER_FRAMED = "frame-ancestors 'none'"


@router.get("/", dependencies=[requires(ANY_TOKEN)])
async def index() -> Response:
    return _page("index.html")


@router.get("/docs", dependencies=[requires(ANY_TOKEN)])
async def docs() -> Response:
    return _page("docs.html")


@router.get("/docs/page.js", dependencies=[requires(ANY_TOKEN)])
async def script() -> Response:
    return Response(_read("page.js"), media_type="text/javascript", headers=_headers(""))


@router.get("/docs/page.css", dependencies=[requires(ANY_TOKEN)])
async def style() -> Response:
    return Response(_read("page.css"), media_type="text/css", headers=_headers(""))


def login() -> Response:
    """What a browser without a session gets in place of any page; it stands by itself."""
    page = _read("login.html")
    # Only what this file holds may run in it.
    hashes = {kind: f"{kind}-src '{_hash(text)}'" for kind, text in _INLINE.findall(page)}
    headers = _headers("; ".join(hashes.values()) + "; ")
    headers["WWW-Authenticate"] = 'Bearer realm="tristore"'
    return HTMLResponse(page, 401, headers)


def _page(name: str) -> Response:
    return HTMLResponse(_read(name), headers=_headers("script-src 'self'; style-src 'self'; "))


def _headers(sources: str) -> dict[str, str]:
    return {
        "Content-Security-Policy": _BASE + sources + _NEVER_FRAMED,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "no-store",
    }


@cache
def _read(name: str) -> str:
    return files("tristore.http").joinpath("static", name).read_text("utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
