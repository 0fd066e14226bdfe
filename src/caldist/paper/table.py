"""The table of properties: its cells, their evidence, and how it is printed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from caldist._util.results import Result
from caldist._util.text_tables import aligned

__all__ = ["COLUMNS", "Evidence", "Kind", "Property", "PropertyError", "PropertyTable"]

Kind = Literal["theorem", "counter-example", "computation"]

COLUMNS = (
    "continuous",
    "complete",
    "sound",
    "robustly complete",
    "robustly sound",
    "consistent",
    "predictions only",
    "cost",
)


class PropertyError(AssertionError):
    """A cell's evidence does not bear it out."""


@dataclass(frozen=True)
class Evidence(Result):
    """What a construction showed.

    Attributes
    ----------
    claim
        What was evaluated, in a sentence.
    numbers
        Names and values of what came out.
    holds
        Whether the numbers bear out the cell.
    """

    claim: str
    numbers: tuple[tuple[str, float], ...]
    holds: bool

    def __str__(self) -> str:
        listed = ", ".join(f"{name} = {format_number(value)}" for name, value in self.numbers)
        return f"{self.claim}: {listed}" + ("" if self.holds else " (does not hold)")

    def _lines(self) -> list[dict[str, Any]]:
        return [{"quantity": name, "value": value} for name, value in self.numbers]


@dataclass(frozen=True)
class Property(Result):
    """One cell of the table.

    Attributes
    ----------
    measure
        The name of the measure, with its option where it has one.
    property
        The name of the column.
    holds
        Whether the measure has the property; for the exponents and the cost, their text.
    reason
        The theorem or the instance, in words.
    kind
        "theorem": ``evidence`` tries a proved inequality with its constant on seeded instances,
        which is no proof. "counter-example": it constructs one, which is. "computation": it runs
        what the cell speaks of.
    evidence
        Runs the construction.
    paper
        What the paper's Table 1 says; None where it says nothing.
    """

    measure: str
    property: str
    holds: bool | str
    reason: str
    kind: Kind
    evidence: Callable[[], Evidence] = field(repr=False, compare=False)
    paper: bool | None = None

    def text(self) -> str:
        """Return the cell as printed."""
        if isinstance(self.holds, str):
            return self.holds
        return "yes" if self.holds else "no"

    def __str__(self) -> str:
        return f"{self.measure}, {self.property}: {self.text()} ({self.kind}). {self.reason}"


@dataclass(frozen=True)
class PropertyTable(Result):
    """Measures and their properties; print it, look up cells, or check all of it."""

    rows: tuple[Property, ...]

    def __getitem__(self, cell: tuple[str, str]) -> Property:
        """Return the cell of a measure and a property."""
        for row in self.rows:
            if (row.measure, row.property) == cell:
                return row
        message = (
            f"no cell {cell!r}: the measures are {', '.join(self.measures)}; the properties are "
            f"{', '.join(COLUMNS)}."
        )
        raise KeyError(message)

    @property
    def measures(self) -> tuple[str, ...]:
        """The measures, in the order of the table."""
        return tuple(dict.fromkeys(row.measure for row in self.rows))

    def check(self) -> tuple[Evidence, ...]:
        """Run the evidence of every cell; raise :class:`PropertyError` where one fails."""
        found = tuple(row.evidence() for row in self.rows)
        failed = [
            f"{row.measure}, {row.property} ({row.text()}): {evidence}"
            for row, evidence in zip(self.rows, found, strict=True)
            if not evidence.holds
        ]
        if failed:
            raise PropertyError("\n".join(failed))
        return found

    def _lines(self) -> list[dict[str, Any]]:
        return [
            {"measure": measure, **{column: self[measure, column].text() for column in COLUMNS}}
            for measure in self.measures
        ]

    def __str__(self) -> str:
        table = [["measure", *COLUMNS], *(list(line.values()) for line in self._lines())]
        rule = ["-" * max(map(len, column)) for column in zip(*table, strict=True)]
        return "\n".join(aligned([table[0], rule, *table[1:]], left=range(len(rule))))

    def to_markdown(self) -> str:
        """Return the table in Markdown."""
        body = [line | {"measure": f"`{line['measure']}`"} for line in self._lines()]
        table = [
            ["measure", *COLUMNS],
            ["---"] * (1 + len(COLUMNS)),
            *(line.values() for line in body),
        ]
        return "\n".join("| " + " | ".join(line) + " |" for line in table)


def format_number(value: float) -> str:
    """Return three digits; what is 0 but for rounding as 0."""
    return "0" if abs(value) < 1e-14 else f"{value:.3g}"
