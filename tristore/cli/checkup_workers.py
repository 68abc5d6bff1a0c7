"""Whether the workers that this platform needs are there, seen by their connections."""

from collections.abc import Iterator, Mapping

from tristore.cli.check import FAIL, OK, WARN, Check, Patient, graded
from tristore.config import INLINE
from tristore.events.admin import health


def workers(patient: Patient, parts: Mapping[str, int], mounts: int) -> Iterator[Check]:
    """Without those of the bus nothing arrives; without the others something is not up to date."""
    bus = ("relay",) if patient.redis_url == INLINE else health.WORKERS
    away = [name for name in bus if not parts.get(name)]
    yield graded(
        "workers",
        FAIL if away else OK,
        f"not connected: {', '.join(away)}" if away else f"connected: {', '.join(bus)}",
        "start them: tristore work relay,ingress",
    )
    if patient.settings.records_of_nodes() is None:
        yield Check("sync", OK, "not needed: TRISTORE_METASTORE__FILESTORE_SYNC is false")
    else:
        yield _worker("sync", parts, "records do not follow the files")
    if not mounts:
        yield Check("reconcile, watch", OK, "not needed: there are no mounts")
        return
    yield _worker("reconcile", parts, "drift is not settled, imports and audits wait")
    yield _worker("watch", parts, "changes from outside are found by audits only")


def _worker(name: str, parts: Mapping[str, int], consequence: str) -> Check:
    if parts.get(name):
        return Check(name, OK, "connected")
    return Check(name, WARN, f"not connected: {consequence}", f"start it: tristore work {name}")
