"""Rows that were left out: how many, why, and how every output says so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Dropped:
    """Rows that ``--drop-missing`` left out, or that a summary says were left out.

    Attributes
    ----------
    rows
        How many.
    total
        How many there were before.
    reasons
        How many for each reason: for a column that has no value, of which a row may lack several,
        or what a summary says.
    groups
        How many of each sub-group, where there are sub-groups.
    firsts
        How many of each sub-group, None without, for the first column that has no value: these add
        up to all.
    """

    rows: int
    total: int | None
    reasons: Mapping[str, int]
    groups: Mapping[str, int] = field(default_factory=dict)
    firsts: Mapping[tuple[str | None, str], int] = field(default_factory=dict)

    def to_dict(self) -> dict[str, object]:
        """Return what JSON says of it."""
        return {"rows": self.rows, "reasons": dict(self.reasons)}

    def note(self, name: str | None = None) -> str:
        """Return it in words; ``name`` is that of a summary."""
        where = "" if name is None else f"{name}: "
        if self.rows == 0:
            return f"{where}no row was left out: none has a missing value."
        of = "" if self.total is None else f" of {self.total:,}"
        reasons = ", ".join(f"{reason} ({count:,})" for reason, count in self.reasons.items())
        why = "for missing values: in" if name is None else "when it was made:"
        return f"{where}{self.rows:,}{of} rows were left out {why} {reasons}."
