"""Clearing: taking a whole directory out of sight, on every kind of mount."""

import asyncio

from tristore.filestore.content import Blobs


async def clear(blobs: Blobs, path: str, token: str) -> None:
    """Right also if it has been done before, or half."""
    if blobs.supports_directories:
        await blobs.remove(path, token)
        return
    number = 0
    async for batch in blobs.walk(path):
        removals = [
            blobs.remove(entry.path, f"{token}-{number + n}") for n, entry in enumerate(batch)
        ]
        number += len(batch)
        await asyncio.gather(*removals)
