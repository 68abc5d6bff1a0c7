"""How long and how much of a dataset is kept."""

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

_AGE = re.compile(r"([1-9][0-9]{0,4})(m|h|d|w)")
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
AGE_PATTERN = r"^[1-9][0-9]{0,4}[mhdw]$"


@dataclass(frozen=True, slots=True)
class Retention:
    """`max_age` as it was given, such as `90d`; None: no limit."""

    max_age: str | None = None
    max_bytes: int | None = None

    @classmethod
    def of(cls, given: dict[str, Any]) -> "Retention":
        return cls(given.get("maxAge"), given.get("maxBytes"))

    def to_json(self) -> dict[str, Any]:
        pairs = {"maxAge": self.max_age, "maxBytes": self.max_bytes}
        return {name: value for name, value in pairs.items() if value is not None}

    @property
    def age(self) -> timedelta | None:
        if self.max_age is None:
            return None
        found = _AGE.fullmatch(self.max_age)
        assert found is not None, self.max_age
        return timedelta(**{_UNITS[found[2]]: int(found[1])})
