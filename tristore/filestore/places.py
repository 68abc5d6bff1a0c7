"""Where the objects of an S3 mount lie, as its configuration says and the settings allow."""

import re
from typing import Any

from tristore.config import S3Credentials, Settings, credentials
from tristore.errors import InvalidPath, MountRefused
from tristore.filestore import paths
from tristore.filestore.bucket import Place
from tristore.filestore.endpoints import check_endpoint

# Both become part of a URL.
_BUCKET = re.compile(r"[A-Za-z0-9](?!.*\.\.)[A-Za-z0-9._-]{1,61}[A-Za-z0-9]")
_REGION = re.compile(r"[a-z0-9-]{1,32}")
_REFERENCE = re.compile(r"env:[A-Z][A-Z0-9_]{0,99}")


async def place(config: dict[str, Any], settings: Settings) -> Place:
    bucket, region = str(config.get("bucket") or ""), str(config.get("region") or "us-east-1")
    if not _BUCKET.fullmatch(bucket):
        raise MountRefused("that is no name of a bucket")
    if not _REGION.fullmatch(region):
        raise MountRefused("that is no name of a region")
    endpoint = await check_endpoint(str(config.get("endpoint") or _amazon(region)), settings)
    return Place(
        endpoint,
        region,
        bucket,
        _prefix(str(config.get("prefix") or "")),
        _credentials(config.get("credentials")),
        settings.filestore.s3_timeout_seconds,
    )


def _amazon(region: str) -> str:
    domain = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
    return f"https://s3.{region}.{domain}"


def _prefix(text: str) -> str:
    try:
        return paths.check_prefix(text.strip("/"))
    except InvalidPath as error:
        raise MountRefused(f"the prefix cannot be used: {error}") from None


def _credentials(reference: object) -> S3Credentials | None:
    """Without a reference requests are not signed; the platform's own keys are never used."""
    if not reference:
        return None
    if not isinstance(reference, str) or not _REFERENCE.fullmatch(reference):
        raise MountRefused("credentials are named by `env:NAME`, in capitals; never written here")
    found = credentials(reference)
    if found is None:
        name = reference.removeprefix("env:")
        raise MountRefused(
            f"the platform's environment has no {name}_ACCESS_KEY_ID and {name}_SECRET_ACCESS_KEY"
        )
    return found
