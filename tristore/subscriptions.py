"""The one table of reactions: which events make which durable reader of the log do something."""

from tristore.metastore.sync_control import CONSUMER as SYNC
from tristore.pipeline.log import CONSUMER as PIPELINE

REACTIONS: dict[str, tuple[str, ...]] = {
    "filestore.node.*": (SYNC,),
    "filestore.nodes.imported": (SYNC,),
    "*": (PIPELINE,),
}


def types_of(consumer: str) -> tuple[str, ...]:
    """What a reader waits for, as its cursor says it."""
    return tuple(pattern for pattern, readers in REACTIONS.items() if consumer in readers)
