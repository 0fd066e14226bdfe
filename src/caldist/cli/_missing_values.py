"""Columns without missing values: rows that have some are refused, or left out and counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caldist.cli._dropped import Dropped
from caldist.cli._source import Columns, Source
from caldist.data import validate
from caldist.engines import cells
from caldist.errors import InvalidInput

_FILL = "Fill it, or leave such rows out with --drop-missing."
_NO_LABEL = cells.Why(
    "a label is 0 or 1, or yes or no, not text",
    "Say with --positive which of two other values counts as 1.",
)


@dataclass(frozen=True)
class Content:
    """Columns that a command needs, with a value in every row.

    Attributes
    ----------
    numbers, names
        Columns by name: doubles, all of them numbers, and text or numbers.
    dropped
        What was left out; None if that was not asked for.
    """

    numbers: dict[str, NDArray[np.float64]]
    names: dict[str, NDArray[Any]]
    dropped: Dropped | None
    source: Source
    kept: NDArray[np.int64] | None

    @contextmanager
    def placing(self) -> Iterator[None]:
        """Say the file, the line and the text of a value that is refused."""
        try:
            yield
        except InvalidInput as error:
            columns = {called(name): name for name in (*self.numbers, *self.names)}
            name = columns.get(error.argument)
            if name is None or not isinstance(error.index, int):
                raise
            row = self._row(error.index)
            raise placed(self.source, row, name, error.reason, error.remedy) from error

    def place(self, at: int) -> str:
        """Return the file and the line of a row."""
        return self.source.cell(self._row(at), next(iter(self.numbers))).where

    def _row(self, at: int) -> int:
        return at if self.kept is None else int(self.kept[at])


def called(name: str) -> str:
    """Return what messages call a column."""
    return f"column {name!r}"


def read_content(
    source: Source,
    numbers: Sequence[str],
    names: Sequence[str],
    *,
    label: str,
    by: str | None,
    drop_missing: bool,
) -> Content:
    """Read columns of numbers and of names, and refuse or leave out rows that lack one of them."""
    found = source.read([*dict.fromkeys(numbers)], [*dict.fromkeys(names)])
    missing = {name: np.isnan(column) for name, column in found.numbers.items()}
    for name, texts in found.names.items():
        missing[name] = np.array([cell is None for cell in texts], dtype=bool)
    for name, column in found.numbers.items():
        if (bad := column == cells.BAD).any():
            row = validate.first(bad)
            why = source.cell(row, name).why or cells.NO_NUMBER
            if name == label and why != cells.PERCENTAGE:
                why = _NO_LABEL
            raise placed(source, row, name, *why)
    lacking = np.logical_or.reduce(list(missing.values()))
    if not lacking.any():
        whole = {name: cells.names(column) for name, column in found.names.items()}
        nothing = Dropped(0, lacking.size, {}) if drop_missing else None
        return Content(found.numbers, whole, nothing, source, None)
    if not drop_missing:
        name, gaps = next((name, gaps) for name, gaps in missing.items() if gaps.any())
        count = int(gaps.sum())
        others = "" if count == 1 else f" (the first of {count:,} rows)"
        raise placed(source, validate.first(gaps), name, f"a value is missing{others}", _FILL)
    kept = np.flatnonzero(~lacking)
    if kept.size == 0:
        counts = ", ".join(f"{name} ({int(gaps.sum()):,})" for name, gaps in missing.items())
        reason = f"leaves no row: each has a missing value, in {counts}"
        raise InvalidInput(argument="--drop-missing", reason=reason)
    return Content(
        {name: column[kept] for name, column in found.numbers.items()},
        {name: cells.names(column[kept]) for name, column in found.names.items()},
        _dropped(found, missing, lacking, by),
        source,
        kept,
    )


def _dropped(
    found: Columns,
    missing: dict[str, NDArray[np.bool_]],
    lacking: NDArray[np.bool_],
    by: str | None,
) -> Dropped:
    rows = np.flatnonzero(lacking)
    group: list[str | None] = [None] * rows.size
    if by is not None:
        there = ~missing[by]
        every = np.full(lacking.size, None, dtype=object)
        every[there] = [str(name) for name in cells.names(found.names[by][there])]
        group = every[rows].tolist()
    columns = list(missing)
    first = np.argmax([missing[name][rows] for name in columns], axis=0)
    firsts = Counter((name, columns[at]) for name, at in zip(group, first, strict=True))
    reasons = {name: int(gaps.sum()) for name, gaps in missing.items() if gaps.any()}
    groups = Counter(name for name in group if name is not None)
    return Dropped(rows.size, lacking.size, reasons, groups, firsts)


def placed(source: Source, row: int, name: str, reason: str, remedy: str) -> InvalidInput:
    """Return the error for a cell, with its file, line and text."""
    cell = source.cell(row, name)
    found: dict[str, Any] = {"value": cell.text, "reason": reason}
    if not cell.text.strip(cells.BLANKS):
        found = {"reason": f"is empty: {reason}"}
    place = f"{cell.where}: {called(name)}"
    return InvalidInput(argument=called(name), index=row, remedy=remedy, place=place, **found)
