"""Hostile paths, links and ranges (S10, S14 to S24), and tokens that are limited to mounts."""

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.api import Api, own_api
from tests.support.files import ROOT, SCOPES, Files

FILES = f"{ROOT}/files"


@pytest.fixture(scope="module")
def api(server_url: str, redis_url: str) -> Iterator[Api]:
    with own_api(server_url, redis_url) as api:
        yield api


@pytest.fixture(scope="module")
def client(api: Api) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=api.url, headers=api.bearer(*SCOPES), timeout=30) as client:
        yield client


@pytest.fixture(scope="module")
def files(api: Api, client: httpx.Client, tmp_path_factory: pytest.TempPathFactory) -> Files:
    folder = tmp_path_factory.mktemp("mounts")
    (folder / "secret").write_bytes(b"secret")
    found = Files.make(api, client, folder)
    found.stored("f", b"mine")
    return found


def ask(files: Files, method: str, target: bytes) -> tuple[int, dict[str, Any]]:
    """The bytes of the request line exactly as given; no client tidies them up."""
    token = files.client.headers["authorization"].encode()
    with socket.create_connection(("127.0.0.1", files.api.settings.port), timeout=60) as wire:
        wire.sendall(
            b"%s %s HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\nContent-Length: 1\r\n"
            b"Connection: close\r\n\r\nx" % (method.encode(), target, token)
        )
        received = b""
        while piece := wire.recv(65536):
            received += piece
    head, _, body = received.partition(b"\r\n\r\n")
    return int(head.split(b" ")[1]), json.loads(body or b"{}")


BAD_PATHS = [
    b"../../etc/passwd",
    b"../secret",
    b"a/../../secret",
    b"a/../f",
    b"%2e%2e/%2e%2e/etc/passwd",
    b"..%2f..%2fetc%2fpasswd",
    b"..%2Fsecret",
    b"/etc/passwd",
    b"%2fetc/passwd",
    b"a//b",
    b"a%00b",
    b"%00",
    b"%ff%fe",
    b"%c0%ae%c0%ae/secret",
    b"%ed%a0%80",
    b"a%0d%0ab",
    b"a%0a",
    b"..%5c..%5csecret",
    b"CON",
    b"a/nul.txt",
    b"com1",
    b".",
    b"./f",
    b"f/",
    b"",
    b".tristore/staging/x",
    b"%2etristore/x",
    b"n" * 300,
    b"/".join([b"d" * 99] * 50),
]


@pytest.mark.parametrize("path", BAD_PATHS, ids=lambda path: path[:20].decode())
def test_a_path_that_means_another_place_is_refused(files: Files, path: bytes) -> None:
    target = f"{FILES}/{files.mount}/".encode() + path
    for method in ("GET", "PUT", "DELETE"):
        status, body = ask(files, method, target)
        assert (status, body["status"]) == (400, 400), (method, body)
        assert body["type"] == "urn:tristore:invalid-path"
    assert ask(files, "HEAD", target)[0] == 400
    assert everything(files) == ["f"]


def everything(files: Files) -> list[str]:
    return sorted(p.name for p in files.folder.iterdir() if p.name != ".tristore")


@pytest.mark.parametrize(
    "path", ["../secret", "/etc/passwd", "a\x00b", "a\nb", "..\\secret", "CON", "a//b", ".tristore"]
)
def test_a_path_in_a_body_or_a_query_is_judged_alike(files: Files, path: str) -> None:
    for command, fields in (
        ("createDirectory", {}),
        ("delete", {"recursive": True}),
        ("move", {"targetPath": "g"}),
        ("updateMetadata", {"metadata": {}}),
    ):
        refused = files.command(command, path, **fields)
        assert refused.status_code in (400, 422), (command, refused.text)
    for command in ("move", "copy"):
        assert files.command(command, "f", targetPath=path).status_code in (400, 422)
    for route, name in (("by-path", "path"), ("", "prefix")):
        params = {"mount": files.mount, name: path}
        asked = files.client.get(f"{ROOT}/nodes/{route}".rstrip("/"), params=params)
        assert asked.status_code == 400, asked.text
    for kind in ("reconcile", "import"):
        body = {"mount": files.mount, "path": path}
        assert files.client.post(f"{ROOT}/{kind}", json=body).status_code in (400, 422)
    assert everything(files) == ["f"]


@pytest.mark.parametrize(
    "mount", [b"A", b"a%20", b"%EF%BD%81", b"a%2f..%2fb", b"*", b"..", b"a%00"]
)
def test_a_mount_is_named_in_one_way_only(files: Files, mount: bytes) -> None:
    status, _ = ask(files, "GET", FILES.encode() + b"/" + mount + b"/f")
    assert status == 422
    asked = files.client.get(f"{ROOT}/nodes?mount={mount.decode()}")
    assert asked.status_code == 422


def test_no_link_leads_out_of_the_mount(files: Files) -> None:
    outside = files.folder.parent / "secret"
    linked = files.folder / "linked"
    files.stored("d/inner", b"1")
    linked.symlink_to(outside)
    (files.folder / "way").symlink_to(files.folder.parent)
    try:
        for path in ("linked", "way/secret"):
            assert files.get(path).status_code in (403, 404, 409), path
            answer = files.put(path, b"overwritten")
            assert 400 <= answer.status_code < 500, (path, answer.text)
            assert str(files.folder.parent) not in answer.text
        assert files.command("createDirectory", "way/made").status_code in (400, 403, 409)
        (files.folder / "d/inner").unlink()
        (files.folder / "d/inner").symlink_to(outside)
        assert files.get("d/inner").status_code in (403, 404, 409)
        assert b"secret" not in files.get("d/inner").content
    finally:
        linked.unlink()
        (files.folder / "way").unlink()
    assert outside.read_bytes() == b"secret"
    assert not (files.folder.parent / "made").exists()
    assert files.client.delete(files.url("d"), params={"recursive": "true"}).status_code == 200


def test_what_is_no_regular_file_is_not_waited_for(files: Files, tmp_path: Path) -> None:
    own = Files.make(files.api, files.client, tmp_path)
    own.stored("pipe", b"1")
    (own.folder / "pipe").unlink()
    os.mkfifo(own.folder / "pipe")
    assert own.get("pipe").status_code in (403, 404, 409)
    # A hard link is an ordinary file in an imported tree.
    own.stored("one", b"same")
    os.link(own.folder / "one", own.folder / "two")
    assert own.get("one").content == b"same"


def test_what_was_uploaded_never_runs_as_a_page(files: Files) -> None:
    page = b"<script>alert(1)</script>"
    for name in ("x.html", "x.svg", 'a";\u202egnp.exe'):
        assert files.put(name, page).status_code == 201
        answer = files.client.get(files.url(name), headers={"Accept": "text/html"})
        assert answer.content == page
        assert answer.headers["content-disposition"].startswith("attachment; filename*=UTF-8''")
        assert answer.headers["content-type"] == "application/octet-stream"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "sandbox" in answer.headers["content-security-policy"]
        files.client.delete(files.url(name))


def test_an_archive_is_kept_as_it_is(files: Files) -> None:
    bomb = b"PK\x03\x04" + b"../../evil" * 10
    files.stored("x.zip", bomb)
    assert files.get("x.zip").content == bomb
    assert everything(files) == ["f", "x.zip"]
    files.client.delete(files.url("x.zip"))
    squeezed = files.put("z", b"\x1f\x8b", content_encoding="gzip")
    assert squeezed.status_code == 415


@pytest.fixture(scope="module")
def limited(files: Files, api: Api, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Files]:
    """A client that may do everything, but only on a mount of its own."""
    own = Files.make(api, files.client, tmp_path_factory.mktemp("own"))
    headers = api.bearer(*SCOPES, mounts=[own.mount])
    with httpx.Client(base_url=api.url, headers=headers, timeout=30) as client:
        yield Files(api, client, own.mount, own.folder)


def test_a_limited_token_cannot_tell_a_foreign_mount_from_none(
    files: Files, limited: Files
) -> None:
    limited.stored("f", b"own")
    node = files.node("f")

    def asked(mount: str, number: int) -> Iterator[httpx.Response]:
        client = limited.client
        for method in ("GET", "PUT", "DELETE", "HEAD"):
            yield client.request(method, f"{FILES}/{mount}/f")
        yield client.put(f"{FILES}/{mount}/f", headers={"If-Match": f'"{node["version"]}"'})
        yield client.get(f"{ROOT}/mounts/{mount}")
        yield client.get(f"{ROOT}/nodes", params={"mount": mount})
        for path in ("f", "absent", ""):
            yield client.get(f"{ROOT}/nodes/by-path", params={"mount": mount, "path": path})
        for suffix in ("", "/children", "/history"):
            yield client.get(f"{ROOT}/nodes/{number}{suffix}")
        for kind in ("reconcile", "import"):
            yield client.post(f"{ROOT}/{kind}", json={"mount": mount})
        for body in bodies(mount):
            yield client.post(f"{ROOT}/commands", json=body)

    def bodies(mount: str) -> Iterator[dict[str, Any]]:
        for command, more in (
            ("createDirectory", {}),
            ("delete", {}),
            ("move", {"targetPath": "g"}),
            ("copy", {"targetPath": "g"}),
            ("updateMetadata", {"metadata": {}}),
        ):
            yield {"command": command, "mount": mount, "path": "f", **more}
        for command in ("move", "copy"):
            target = {"targetMount": mount, "targetPath": "g"}
            yield {"command": command, "mount": limited.mount, "path": "f", **target}

    foreign = list(asked(files.mount, int(node["id"])))
    absent = list(asked("nowhere", 2**40))
    assert len(foreign) > 20
    for one, other in zip(foreign, absent, strict=True):
        assert one.status_code == other.status_code == 404, (one.request.url, one.text)
        assert plain(one, files.mount, node["id"]) == plain(other, "nowhere", str(2**40))
    assert files.get("f").content == b"mine"
    assert limited.get("f").content == b"own"


def plain(answer: httpx.Response, mount: str, number: str) -> str:
    """The answer without what the caller said itself, and without the number of the request."""
    body = answer.json() if answer.content else {}
    body.pop("requestId", None)
    return json.dumps(body).replace(mount, "M").replace(number, "N")


def test_a_limited_token_sees_only_its_own_in_lists(files: Files, limited: Files) -> None:
    mine = limited.stored("seen")["journalId"]
    foreign = files.stored("unseen")["journalId"]
    shown = limited.client.get(f"{ROOT}/mounts").json()["items"]
    assert [mount["name"] for mount in shown] == [limited.mount]
    entries = limited.listed("/journal", limit=1)
    assert {entry["mount"] for entry in entries} == {limited.mount}
    assert mine in [entry["id"] for entry in entries]
    get = limited.client.get
    absent = get(f"{ROOT}/journal/{2**40}")
    other = get(f"{ROOT}/journal/{foreign}")
    assert (other.status_code, plain(other, "-", str(foreign))) == (
        404,
        plain(absent, "-", str(2**40)),
    )
    job = files.client.post(f"{ROOT}/reconcile", json={"mount": files.mount}).json()["id"]
    assert get(f"{ROOT}/reconcile/{job}").status_code == 404
    assert get(f"{ROOT}/reconcile").json()["items"] == []
    assert limited.client.get("/v1/events/stream").status_code == 403
    body = {"name": "another", "kind": "local", "root": str(limited.folder.parent)}
    assert limited.client.post(f"{ROOT}/mounts", json=body).status_code in (403, 422)
    files.client.delete(files.url("unseen"))


def test_a_command_may_not_move_into_or_out_of_what_is_not_seen(
    files: Files, limited: Files
) -> None:
    limited.stored("here")
    for mount, path, target in (
        (limited.mount, "here", files.mount),
        (files.mount, "f", limited.mount),
    ):
        body = {"command": "move", "mount": mount, "path": path}
        body |= {"targetMount": target, "targetPath": "there"}
        assert limited.client.post(f"{ROOT}/commands", json=body).status_code == 404
    assert (limited.folder / "here").exists() and (files.folder / "f").exists()
