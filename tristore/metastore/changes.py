"""The kinds of change one may ask for, and the proposal each makes out of the record that is."""

from dataclasses import dataclass
from typing import Protocol

from tristore.errors import AlreadyExists, InvalidRecord, NotFound, Violation
from tristore.metastore.conditions import Condition
from tristore.metastore.content import Content
from tristore.metastore.model import RESERVED, Action, Metadata, Proposal, Record, same_json
from tristore.metastore.patching import Patch

ANY = Condition()


@dataclass(frozen=True, slots=True)
class Author:
    """Who changes records, and the request or event that made them do it."""

    actor: str
    correlation_id: str | None


class Change(Protocol):
    """`reserves`: the sync keeps its object in records of this namespace."""

    @property
    def address(self) -> tuple[str, str]: ...

    def propose(self, before: Record | None, author: Author, reserves: bool) -> Proposal: ...


@dataclass(frozen=True, slots=True)
class _Addressed:
    namespace: str
    key: str

    @property
    def address(self) -> tuple[str, str]:
        return self.namespace, self.key

    def _proposal(
        self,
        content: Content,
        author: Author,
        action: Action,
        *,
        deleted: bool = False,
        restored_from: int | None = None,
    ) -> Proposal:
        return Proposal(
            *(self.namespace, self.key, content.metadata, content.tags, content.owner),
            *(deleted, action, author.actor, author.correlation_id, restored_from),
        )


@dataclass(frozen=True, slots=True)
class Create(_Addressed):
    content: Content

    def propose(self, before: Record | None, author: Author, reserves: bool) -> Proposal:
        if before is not None and before.deleted_at is not None:
            raise AlreadyExists(
                "a deleted record has that key; PUT writes over it, POST …/restore brings it back"
            )
        if before is not None:
            raise AlreadyExists("a record has that key; PUT replaces it, PATCH changes it")
        metadata = _with_reserved(self.content.metadata, None, reserves)
        content = Content(metadata, self.content.tags, self.content.owner)
        return self._proposal(content, author, "create")


@dataclass(frozen=True, slots=True)
class Put(_Addressed):
    content: Content
    condition: Condition = ANY

    def propose(self, before: Record | None, author: Author, reserves: bool) -> Proposal:
        self.condition.check(before)
        metadata = _with_reserved(self.content.metadata, before, reserves)
        content = Content(metadata, self.content.tags, self.content.owner)
        return self._proposal(content, author, _put_action(before))


@dataclass(frozen=True, slots=True)
class Amend(_Addressed):
    patch: Patch
    condition: Condition = ANY

    def propose(self, before: Record | None, author: Author, reserves: bool) -> Proposal:
        live = _live(before)
        self.condition.check(live)
        after = self.patch.applied(Content(live.metadata, live.tags, live.owner))
        if reserves and RESERVED in self.patch.metadata:
            _check_reserved(after.metadata, live)
        return self._proposal(after, author, "update")


@dataclass(frozen=True, slots=True)
class Delete(_Addressed):
    condition: Condition = ANY

    def propose(self, before: Record | None, author: Author, reserves: bool) -> Proposal:
        live = _live(before)
        self.condition.check(live)
        content = Content(live.metadata, live.tags, live.owner)
        return self._proposal(content, author, "delete", deleted=True)


@dataclass(frozen=True, slots=True)
class Restore(_Addressed):
    """`content` is what the record held in version `version`."""

    content: Content
    version: int
    condition: Condition = ANY

    def propose(self, before: Record | None, author: Author, reserves: bool) -> Proposal:
        if before is None:
            raise no_record()
        self.condition.check(before)
        metadata = self.content.metadata
        if reserves:
            metadata = {k: v for k, v in metadata.items() if k != RESERVED}
            metadata |= _reserved(before)
        content = Content(metadata, self.content.tags, self.content.owner)
        return self._proposal(content, author, "restore", restored_from=self.version)


@dataclass(frozen=True, slots=True)
class Purge(_Addressed):
    condition: Condition = ANY

    def propose(self, before: Record | None, author: Author, reserves: bool) -> Proposal:
        if before is None:
            raise no_record()
        self.condition.check(before)
        return self._proposal(Content({}, (), None), author, "purge", deleted=True)


def no_record() -> NotFound:
    """The same whether it is not there, is deleted, or is not for this token to know."""
    return NotFound("there is no such record, or this token may not see it")


def _live(before: Record | None) -> Record:
    if before is None or before.deleted_at is not None:
        raise no_record()
    return before


def _put_action(before: Record | None) -> Action:
    if before is None:
        return "create"
    return "update" if before.deleted_at is None else "restore"


def _with_reserved(metadata: Metadata, before: Record | None, reserves: bool) -> Metadata:
    """A user's metadata with the sync's object kept as it is."""
    if not reserves:
        return metadata
    if RESERVED in metadata:
        _check_reserved(metadata, before)
        return metadata
    return {**metadata, **_reserved(before)}


def _check_reserved(metadata: Metadata, before: Record | None) -> None:
    wanted = {name: value for name, value in metadata.items() if name == RESERVED}
    if not same_json(wanted, _reserved(before)):
        message = "is kept by the filestore sync; leave it out, and it stays as it is"
        raise InvalidRecord([Violation(f"/metadata/{RESERVED}", message)])


def _reserved(before: Record | None) -> Metadata:
    found = before.metadata if before else {}
    return {name: value for name, value in found.items() if name == RESERVED}
