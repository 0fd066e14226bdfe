"""What a cell means: a number, a word for one of the labels, or nothing; in Python and in SQL.

One rule for every reader. Blanks around a cell do not count. In a column of numbers a cell is

- missing, if it is empty or one of :data:`MISSING`;
- a number in digits, with a point, and with a decimal comma where commas do not separate cells;
- 1 or 0, if it is one of :data:`TRUE` or :data:`FALSE`;
- otherwise no number, :data:`BAD`, which no check lets pass. So are ``inf``, ``1_000`` and ``5%``.

Names, of groups say, are text: only an empty cell is missing, since NA may be a country.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

MISSING = ("", "na", "n/a", "#n/a", "<na>", "nan", "-nan", "null", "none")
FALSE = ("false", "f", "no", "n")
TRUE = ("true", "t", "yes", "y")
BAD = -math.inf
BLANKS = " \t\r\n\f\v"

_WORDS = (
    dict.fromkeys(MISSING, math.nan) | dict.fromkeys(FALSE, 0.0) | dict.fromkeys(TRUE, 1.0)
)  # in lower case
_DIGITS = r"[+-]?([0-9]+{mark}?[0-9]*|{mark}[0-9]+)([eE][+-]?[0-9]+)?"
_MARKS = {".": r"\.", ",": "[.,]"}  # decimal mark of a file: what numbers may have
_NUMBERS = {mark: re.compile(_DIGITS.format(mark=found)) for mark, found in _MARKS.items()}
_PLAIN = re.compile("[0-9.eE+\n-]*")  # what Python takes for a number of these is one
_WHOLE = re.compile("[+-]?(0|[1-9][0-9]{0,17})")  # 007 is a name
_FRACTION = re.compile(r"[+-]?(0|[1-9][0-9]*)(\.[0-9]*)?([eE][+-]?[0-9]+)?")


def number(cell: object, decimal: str = ".") -> float:
    """Return what a cell means in a column of numbers: NaN if it is missing, BAD if it is none."""
    if not isinstance(cell, str):
        return _typed(cell)
    text = cell.strip(BLANKS)
    if _NUMBERS[decimal].fullmatch(text):
        return float(text.replace(",", "."))
    return _WORDS.get(text.lower(), BAD)


def _typed(cell: object) -> float:
    """Return a value of JSON or of a typed column."""
    if cell is None:
        return math.nan
    try:
        return float(cell)  # type: ignore[arg-type]  # what is none is refused
    except (TypeError, ValueError, OverflowError):
        return BAD


def numbers(cells: Iterable[object], decimal: str = ".") -> NDArray[np.float64]:
    """Return a column of numbers."""
    cells = list(cells)
    try:
        if _PLAIN.fullmatch("\n".join(cells)):  # type: ignore[arg-type]  # other types are refused
            return np.array([float(cell) for cell in cells])  # type: ignore[arg-type]
    except (TypeError, ValueError):
        pass
    return np.fromiter((number(cell, decimal) for cell in cells), np.float64)


def numbers_in_sql(column: str, decimal: str = ".") -> str:
    """Return an expression of DuckDB that is :func:`number` of a text, NULL if it is missing."""
    text = f"trim({column}, {_quoted(BLANKS)})"
    pattern = _quoted(_DIGITS.format(mark=_MARKS[decimal]))
    cast = f"TRY_CAST({column} AS DOUBLE)"
    return (
        # Nearly all cells are plain numbers, of which DuckDB knows more kinds: 1_000, +-1, inf.
        f"CASE WHEN abs({cast}) <= 1e300 AND NOT contains({column}, '_') "
        f"AND NOT contains({column}, '+-') THEN {cast} "
        f"WHEN {column} IS NULL OR lower({text}) IN {_listed(MISSING)} THEN NULL "
        f"WHEN regexp_full_match({text}, {pattern}) "
        f"THEN coalesce(TRY_CAST(replace({text}, ',', '.') AS DOUBLE), '-inf'::DOUBLE) "
        f"WHEN lower({text}) IN {_listed(TRUE)} THEN 1.0 "
        f"WHEN lower({text}) IN {_listed(FALSE)} THEN 0.0 "
        "ELSE '-inf'::DOUBLE END"
    )


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _listed(words: Iterable[str]) -> str:
    return f"({', '.join(map(_quoted, words))})"


def name(cell: object) -> str | int | float | None:
    """Return what a cell means in a column of names: None if it is missing."""
    if isinstance(cell, str):
        return cell.strip(" ") or None
    if isinstance(cell, bool | np.bool_):
        return "true" if cell else "false"
    if isinstance(cell, int | float):
        return None if cell != cell else cell  # noqa: PLR0124 -- NaN
    return None if cell is None else str(cell)


def names(cells: Iterable[object]) -> NDArray[Any]:
    """Return a column of names: numbers, whole if all of them are, or else text."""
    found = list(cells)
    if all(_is_whole(cell) or _fits(_WHOLE, cell) for cell in found):
        return np.array([int(str(cell)) for cell in found], dtype=np.int64)
    if all(isinstance(cell, int | float) or _fits(_FRACTION, cell) for cell in found):
        return np.array([float(str(cell)) for cell in found])
    return np.array([str(cell) for cell in found], dtype=object)


def _is_whole(cell: object) -> bool:
    return isinstance(cell, int) and -(2**63) <= cell < 2**63


def _fits(pattern: re.Pattern[str], cell: object) -> bool:
    return isinstance(cell, str) and pattern.fullmatch(cell) is not None


class Why(NamedTuple):
    """Why a cell is refused, and what to do."""

    reason: str
    remedy: str


NO_NUMBER = Why("it is no number", "Correct it, or leave that row out.")
PERCENTAGE = Why("it is a percentage", "Take the % sign away and divide by 100.")
DECIMAL_COMMA = Why(
    "it is no number",
    "A decimal comma is understood where semicolons or tabs separate the cells: write a point.",
)


def why_not(text: str, decimal: str = ".") -> Why | None:
    """Return why a cell is no number; None if it is one, or missing."""
    if number(text, decimal) != BAD:
        return None
    clean = text.strip(BLANKS)
    if clean.endswith("%") and number(clean[:-1], decimal) != BAD:
        return PERCENTAGE
    if decimal == "." and number(clean, ",") != BAD:
        return DECIMAL_COMMA
    return NO_NUMBER
