"""Pages of the log as what the sync has to do, node by node."""

from collections.abc import Sequence

from tristore.errors import InvalidEvent
from tristore.events.log import Stored
from tristore.metastore import node_view
from tristore.metastore.node_view import NodeChange
from tristore.metastore.refusals import Refusal

Item = NodeChange | Refusal


def items(events: Sequence[Stored]) -> list[Item]:
    """Every node of the events, in order; an event that cannot be read stands as its refusal."""
    found: list[Item] = []
    for event in events:
        try:
            found += node_view.read(event)
        except InvalidEvent as error:
            found.append(Refusal.unreadable(event, error))
    return found
