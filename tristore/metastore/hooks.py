"""Hooks: an operator's own code that may refuse or enrich a write, found by entry point."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.metadata import entry_points

from tristore.errors import Refused, StartRefused
from tristore.metastore.content import normal_tags, owner_violations, tags_violations
from tristore.metastore.model import RESERVED, Proposal, Record, same_json

GROUP = "tristore.metastore_hooks"
_log = logging.getLogger(__name__)

# Called with the record as it is (None: there is none) and the change as it is wanted, for every
# change but a purge, inside the transaction that stores it; the order is that of the hooks' names.
# It gives back the proposal, or one made of it by `dataclasses.replace` with other metadata, tags
# or owner; it raises `tristore.errors.Refused` with a sentence for the caller. It must be quick and
# ask nobody: other requests wait meanwhile. It may run more than once for one change.
Hook = Callable[[Record | None, Proposal], Proposal]


class Hooks:
    def __init__(self, found: Sequence[tuple[str, Hook]] = ()) -> None:
        self._found = sorted(found, key=lambda item: item[0])

    @classmethod
    def installed(cls) -> "Hooks":
        """Those of the packages beside us; one that cannot be loaded keeps the process from
        starting, since it may be there to refuse."""
        found: list[tuple[str, Hook]] = []
        for entry in entry_points(group=GROUP):
            try:
                found.append((entry.name, entry.load()))
            except Exception as error:
                raise StartRefused(
                    f"the metastore hook {entry.name} ({entry.value}) cannot be loaded: "
                    f"{type(error).__name__}: {error}; repair or uninstall its package"
                ) from error
        return cls(found)

    def passed(self, before: Record | None, proposal: Proposal) -> Proposal:
        """The proposal as all hooks want it."""
        for name, hook in self._found if proposal.action != "purge" else ():
            proposal = _kept(name, proposal, _called(name, hook, before, proposal))
        return proposal


def _called(name: str, hook: Hook, before: Record | None, proposal: Proposal) -> Proposal:
    try:
        return hook(before, proposal)
    except Refused:
        raise
    except Exception:
        # Without its word the change must not happen.
        _log.exception("a metastore hook failed", extra={"hook": name})
        raise Refused(f"the hook {name} failed; the service's log says why") from None


def _kept(name: str, given: Proposal, made: object) -> Proposal:
    """A hook may change the content and nothing else."""
    if made is given:
        return given
    if isinstance(made, Proposal) and _fixed(made) == _fixed(given) and _is_content(made, given):
        return replace(made, tags=normal_tags(made.tags))
    _log.error("a metastore hook changed what it must not", extra={"hook": name})
    raise Refused(f"the hook {name} failed; the service's log says why")


def _is_content(made: Proposal, given: Proposal) -> bool:
    return (
        isinstance(made.metadata, dict)
        and same_json(made.metadata.get(RESERVED), given.metadata.get(RESERVED))
        and not tags_violations(list(made.tags), "/tags")
        and not owner_violations(made.owner)
    )


def _fixed(proposal: Proposal) -> tuple[object, ...]:
    return (
        *(proposal.namespace, proposal.key, proposal.deleted, proposal.action, proposal.actor),
        *(proposal.correlation_id, proposal.restored_from),
    )
