"""The content of a mount, by the backend that its kind asks for."""

from tristore.config import Settings
from tristore.filestore.content import Blobs, Entry, EntryKind, Fingerprint, Staged
from tristore.filestore.model import Mount

__all__ = ["Blobs", "Entry", "EntryKind", "Fingerprint", "Staged", "open_blobs"]


async def open_blobs(mount: Mount, settings: Settings) -> Blobs:
    """Raises MountRefused where the settings do not allow the root or endpoint, and Unavailable
    where it cannot be reached."""
    # Late: a platform without S3 mounts never loads the S3 client.
    if mount.kind == "s3":
        from tristore.filestore.blobs_s3 import S3Blobs

        return await S3Blobs.open(mount, settings)
    from tristore.filestore.blobs_local import LocalBlobs

    return await LocalBlobs.open(mount, settings)
