"""A digest of what a Delta commit changes, kept in the commit: one flipped bit is noticed.

Nothing else guards the JSON of a Delta log: a bit in the word `add` makes a file vanish from the
table, one in a bound makes queries pass it over.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

KEY = "tristoreDigest"
_ACTIONS = {"commitInfo", "protocol", "metaData", "add", "remove", "txn", "cdc", "domainMetadata"}


def digest(actions: Iterable[Any], transactions: Mapping[str, int]) -> str:
    """Of the actions that a commit is made of, as deltalake takes them."""
    made = [_made(action) for action in actions]
    return _sum(made, [[app, version] for app, version in transactions.items()])


def agrees(commit: Path) -> bool:
    """Whether a commit says what it said when it was written; one without a digest may."""
    told, made, transactions = None, [], []
    for line in commit.read_text("utf-8").splitlines():
        ((name, action),) = json.loads(line).items()
        if name not in _ACTIONS:
            return False
        if name == "commitInfo":
            told = action.get(KEY)
        elif name == "txn":
            transactions.append([action["appId"], action["version"]])
        elif name in ("add", "remove"):
            made.append(_read(name, action))
    return told is None or told == _sum(made, transactions)


def _made(action: Any) -> list[Any]:
    if not hasattr(action, "stats"):
        return ["remove", unquote(action.path)]
    partition, stats = dict(action.partition_values), json.loads(action.stats)
    return ["add", unquote(action.path), action.size, partition, stats]


def _read(name: str, action: dict[str, Any]) -> list[Any]:
    path = unquote(action["path"])
    if name == "remove":
        return [name, path]
    stats = json.loads(action["stats"]) if action.get("stats") else None
    return [name, path, action["size"], action["partitionValues"], stats]


def _sum(made: list[list[Any]], transactions: list[list[Any]]) -> str:
    whole = [sorted(made, key=lambda action: action[:2]), sorted(transactions)]
    text = json.dumps(whole, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
