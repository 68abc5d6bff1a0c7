"""Which S3 servers a mount may speak to."""

import ipaddress

import pytest

from tristore.config import FilestoreSettings, Settings
from tristore.errors import MountRefused, Unavailable
from tristore.filestore.endpoints import Endpoint, check_endpoint, parse, public
from tristore.filestore.places import place


def settings(listed: str = "") -> Settings:
    return Settings(filestore=FilestoreSettings(allowed_endpoints=listed))


@pytest.mark.parametrize(
    "endpoint",
    [
        "https://127.0.0.1",
        "https://127.1",
        "https://0x7f000001",
        "https://2130706433",
        "https://0177.0.0.1",
        "https://localhost",
        "https://[::1]:9000",
        "https://[::ffff:127.0.0.1]",
        "https://[::ffff:7f00:1]",
        "https://[64:ff9b::7f00:1]",
        "https://10.0.0.1",
        "https://192.168.1.1:9000",
        "https://172.16.0.1",
        "https://169.254.169.254",
        "https://[fd00:ec2::254]",
        "https://[fe80::1]",
        "https://0.0.0.0",
        "https://[::]",
        "https://100.64.0.1",
        "https://224.0.0.1",
        "https://255.255.255.255",
    ],
)
async def test_an_address_inside_is_refused(endpoint: str) -> None:
    with pytest.raises(MountRefused, match="ALLOWED_ENDPOINTS"):
        await check_endpoint(endpoint, settings())


@pytest.mark.parametrize(
    "endpoint",
    [
        "",
        "127.0.0.1",
        "gopher://127.0.0.1",
        "file:///etc/passwd",
        "https://",
        "https://:9000",
        "https://user:secret@example.com",
        "https://example.com/bucket",
        "https://example.com?x=1",
        "https://example.com#x",
        "https://example.com:99999",
        "https://exa mple.com",
        "https://\uff45xample.com",
        "https://[::1",
        "https://a\nb",
    ],
)
async def test_what_is_no_endpoint_is_refused(endpoint: str) -> None:
    with pytest.raises(MountRefused):
        await check_endpoint(endpoint, settings(endpoint if "127" in endpoint else ""))


async def test_a_public_address_needs_tls() -> None:
    assert await check_endpoint("https://8.8.8.8", settings()) == Endpoint("https", "8.8.8.8", 443)
    with pytest.raises(MountRefused, match="TLS"):
        await check_endpoint("http://8.8.8.8", settings())


async def test_a_listed_endpoint_is_allowed_and_only_that() -> None:
    listed = settings("http://127.0.0.1:9000, https://minio.internal")
    assert (await check_endpoint("http://127.0.0.1:9000/", listed)).port == 9000
    assert (await check_endpoint("https://minio.internal:443", listed)).host == "minio.internal"
    for other in ("http://127.0.0.1:9001", "https://127.0.0.1:9000", "http://minio.internal"):
        with pytest.raises(MountRefused):
            await check_endpoint(other, listed)


async def test_a_name_that_means_nothing_may_mean_something_later() -> None:
    with pytest.raises(Unavailable):
        await check_endpoint("https://no-such-host.invalid", settings())


def test_an_address_within_an_address_is_seen() -> None:
    for text in ("2002:7f00:1::", "::ffff:10.0.0.1", "64:ff9b::a00:1", "2001:0:7f00:1::"):
        assert not public(ipaddress.ip_address(text)), text
    assert public(ipaddress.ip_address("2606:4700::1111"))


def test_an_endpoint_has_one_spelling() -> None:
    same = ["https://Example.com", "https://example.com:443", "https://example.com/"]
    assert {parse(text).origin for text in same} == {"https://example.com:443"}
    assert parse("http://[::1]:9000").origin == "http://[::1]:9000"


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"bucket": "a/../b"},
        {"bucket": "b..b"},
        {"bucket": "x"},
        {"bucket": "bucket?x"},
        {"bucket": "bucket", "region": "eu/../x"},
        {"bucket": "bucket", "prefix": "a/../b"},
        {"bucket": "bucket", "prefix": ".tristore"},
        {"bucket": "bucket", "credentials": "AKIA:secret"},
        {"bucket": "bucket", "credentials": "env:lower"},
        {"bucket": "bucket", "credentials": {"accessKeyId": "x"}},
        {"bucket": "bucket", "credentials": "env:NOWHERE_TO_BE_FOUND"},
    ],
)
async def test_a_bucket_that_cannot_be_named_is_refused(config: dict[str, object]) -> None:
    with pytest.raises(MountRefused):
        await place({"endpoint": "https://8.8.8.8", **config}, settings())


async def test_credentials_are_taken_from_where_the_reference_points(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("S3_B_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("S3_B_SECRET_ACCESS_KEY", "the secret")
    config = {"bucket": "bucket", "endpoint": "https://8.8.8.8", "credentials": "env:S3_B"}
    found = (await place(config, settings())).credentials
    assert found == ("key", "the secret", None)
    assert "the secret" not in repr(found)
