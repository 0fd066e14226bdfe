"""What the parts share: tables, sections of the page, and progress bars."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["SEED", "Card", "Cell", "Drawing", "Part", "Section", "Table", "bar", "format_number"]

Cell = str | int | float
Item = TypeVar("Item")

SEED = 20221130  # of every part; with it the same numbers come out each time


@dataclass(frozen=True)
class Table:
    """Rows under named columns, written as ``NAME.csv``; ``shown`` on the page or only linked."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    shown: bool = True

    def select(self, *columns: str, **where: Cell) -> list[tuple[Cell, ...]]:
        """Return some columns of the rows that have the given values in other columns."""
        position = {name: at for at, name in enumerate(self.columns)}
        return [
            tuple(row[position[name]] for name in columns)
            for row in self.rows
            if all(row[position[name]] == value for name, value in where.items())
        ]

    def numbers(self, *columns: str, **where: Cell) -> list[list[float]]:
        """Return the same as one list of numbers for each column."""
        rows = self.select(*columns, **where)
        return [[float(cell) for cell in column] for column in zip(*rows, strict=True)]

    def csv(self) -> bytes:
        """Return the table as comma-separated values that read back as the same numbers."""
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(self.rows)
        return text.getvalue().encode()


@dataclass(frozen=True)
class Card:
    """A short entry of the page: labelled texts, then computed quantities."""

    title: str
    texts: tuple[tuple[str, str], ...]
    values: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Section:
    """What a part computed: text in paragraphs, tables and cards, without any drawing."""

    text: str
    tables: tuple[Table, ...] = ()
    cards: tuple[Card, ...] = ()

    def table(self, name: str) -> Table:
        """Return the table of that name."""
        return next(table for table in self.tables if table.name == name)


@dataclass(frozen=True)
class Drawing:
    """A figure under its file name, with what it shows in words."""

    name: str
    figure: Figure
    caption: str


@dataclass(frozen=True)
class Part:
    """One part of the reproduction: how to compute it by a plan, and how to draw what came out."""

    name: str
    title: str
    compute: Callable[[Any], Section]
    draw: Callable[[Section], list[Drawing]]
    full: Any = None
    quick: Any = None


def bar(items: Sequence[Item], name: str) -> Iterator[Item]:
    """Go over the items with a progress bar on stderr, where that is a terminal."""
    from tqdm import tqdm  # not needed otherwise

    yield from tqdm(items, desc=name, disable=None, leave=False)


def format_number(cell: Cell) -> str:
    """Return a number with four significant digits for people; what is 0 but for rounding as 0.

    Examples
    --------
    >>> from caldist.paper.common import format_number
    >>> format_number(0.123456), format_number(1e-6), format_number(-1.5e-7), format_number(1000)
    ('0.1235', '10⁻⁶', '−1.5 · 10⁻⁷', '1,000')
    """
    if isinstance(cell, str):
        return cell
    if isinstance(cell, int):
        return f"{cell:,}"
    if abs(cell) < 1e-15:
        return "0"
    if 1e-4 <= abs(cell) < 1e4:
        return f"{cell:.4g}".replace("-", "−")
    mantissa, exponent = f"{cell:.2e}".split("e")
    power = "10" + str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    digits = f"{float(mantissa):g}".replace("-", "−")
    return power if digits == "1" else f"{digits} · {power}"
