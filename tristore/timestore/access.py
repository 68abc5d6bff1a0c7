"""Which datasets a token may see, read and write."""

from tristore.errors import Forbidden, NotFound
from tristore.timestore.dataset import Dataset
from tristore.tokens import Principal


def own_datasets(principal: Principal) -> list[str] | None:
    """Those it may use; None: all. The log's tables tell of every mount and namespace, so a token
    limited to some of those has only the datasets it names."""
    if principal.datasets is None and principal.limited:
        return []
    return principal.datasets


def may_see(principal: Principal, slug: str) -> bool:
    own = own_datasets(principal)
    return own is None or slug in own


def may_read(principal: Principal, dataset: Dataset) -> bool:
    return may_see(principal, dataset.slug) and dataset.read_scope in principal.scopes


def absent() -> NotFound:
    return NotFound("there is no such dataset, or this token may not see it")


def readable(principal: Principal, dataset: Dataset | None) -> Dataset:
    """A dataset that may not be read is as one that is not there."""
    if dataset is None or not dataset.active or not may_read(principal, dataset):
        raise absent()
    return dataset


def writable(principal: Principal, dataset: Dataset | None) -> Dataset:
    if dataset is None or not dataset.active or not may_see(principal, dataset.slug):
        raise absent()
    if dataset.write_scope not in principal.scopes:
        if may_read(principal, dataset):
            raise Forbidden(f"the token lacks the scope {dataset.write_scope}")
        raise absent()
    return dataset
