"""A measured figure, and the line it prints."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """`limit` is the bare component doing the same, in the same run and unit."""

    name: str
    value: float
    unit: str
    limit: float | None
    limit_name: str
    target: str

    @property
    def ratio(self) -> float | None:
        return self.value / self.limit if self.limit else None

    def row(self) -> str:
        ratio = "-" if self.ratio is None else f"{self.ratio:.2f}"
        limit = "-" if self.limit is None else f"{self.limit:,.1f} ({self.limit_name})"
        shown = f"{self.value:,.1f} {self.unit}"
        return f"| {self.name} | {shown} | {limit} | {ratio} | {self.target} |"
