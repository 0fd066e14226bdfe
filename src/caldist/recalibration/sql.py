"""A table as SQL: nested cases for any engine, and for DuckDB lists in which a row is looked up."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from caldist._util.types import Vector
from caldist.data import validate
from caldist.errors import InvalidInput, InvalidType

# How a dialect opens and closes a quoted name, and what a closing mark inside of one becomes.
_QUOTES = {
    "ansi": ('"', '"', '""'),
    "bigquery": ("`", "`", "\\`"),
    "mysql": ("`", "`", "``"),
    "spark": ("`", "`", "``"),
    "sqlserver": ("[", "]", "]]"),
}
DIALECTS = tuple(_QUOTES)
_FEW = 16  # knots
_CELLS = 512
_LEAST = 1e-16  # odds below this, or above its inverse, share a cell
_LOGIT_CELLS = _CELLS / (-2 * np.log(_LEAST))  # a unit of log odds, in cells


class Lookup(NamedTuple):
    """A map for DuckDB."""

    steps: list[
        str
    ]  # columns of one SELECT after the other, all of whose names begin with a score's
    value: str  # of the score, where it is a probability, and of the columns
    lists: list[list[float | None]]  # that the steps call $1, $2 and so on


def expression(x: Vector, y: Vector, column: str, dialect: str) -> str:
    """Return the SQL of a piecewise linear table, NULL where a score is no probability."""
    name = _quoted(column, dialect)
    body = _pieces(name, x.tolist(), y.tolist(), 0, x.size - 1)
    if x[-1] < 1:
        body = f"CASE WHEN {name} >= {_number(x[-1])} THEN {_number(y[-1])} ELSE {body} END"
    if x[0] > 0:
        body = f"CASE WHEN {name} <= {_number(x[0])} THEN {_number(y[0])} ELSE {body} END"
    return f"CASE WHEN {name} >= 0 AND {name} <= 1 THEN {body} END"


def lookup(x: Vector, y: Vector, column: str) -> Lookup:
    """Return the same function for DuckDB, where many cases take several times as long as lists.

    A cell that holds at most two knots, as those around a step, has a line before them, one
    between and one after. Rows of a cell with more go through cases. Cells are
    equally wide in the predictions or in their log odds, whichever leaves fewer such cells. There
    are no more of them, and lists stand in no CASE, because DuckDB copies them there, and its time
    grows with their length.
    """
    if x.size <= _FEW:
        return Lookup([], expression(x, y, column, "ansi"), [])
    name, at = _quoted(column, "ansi"), _quoted(f"{column}_at", "ansi")
    score = f"greatest(0, least(1, {name}))"
    odds = f"(ln({score} + {_LEAST}) - ln(1 - {score} + {_LEAST}))"
    logits = np.maximum.accumulate(np.log(x + _LEAST) - np.log(1 - x + _LEAST))
    middle = _CELLS / 2 + 0.5
    found = [
        (*_lines(x, y, x * _CELLS, slack=0), f"{score} * {_CELLS}"),
        (
            # Logarithms differ in their last digit from one library to the next.
            *_lines(x, y, middle + logits * _LOGIT_CELLS, slack=1e-8),
            f"{middle} + {odds} * {_number(_LOGIT_CELLS)}",
        ),
    ]
    lists, crowded, knots, where = min(found, key=lambda each: len(each[1]))
    columns = [_quoted(f"{column}_{i}", "ansi") for i in range(1, len(lists) + 1)]
    steps = [
        f"CAST(floor({where}) AS INTEGER) + 1 AS {at}",  # lists begin at 1
        ", ".join(f"list_extract(${i}, {at}) AS {each}" for i, each in enumerate(columns, 1)),
    ]
    a, y_a, before, after, *two = columns
    value = f"{y_a} + ({name} - {a}) * CASE WHEN {name} < {a} THEN {before} ELSE {after} END"
    if two:
        b, y_b, beyond = two
        value = f"CASE WHEN {name} < {b} THEN {value} ELSE {y_b} + ({name} - {b}) * {beyond} END"
    for cell in crowded:
        for values in lists:
            values[cell] = None
    if crowded:
        near = sorted({knot for cell in crowded for knot in range(*knots[cell])})
        value = f"coalesce({value}, {expression(x[near], y[near], column, 'ansi')})"
    return Lookup(steps, value, lists)


def _lines(
    x: Vector, y: Vector, places: Vector, *, slack: float
) -> tuple[list[list[float | None]], list[int], list[tuple[int, int]]]:
    """Return lists of what holds in each cell, the cells of which it is not the whole, and knots.

    These are from the last one before each cell to the first one after it. The places of the knots
    are in cells; one that is within the slack of a cell counts as in it.
    """
    cells = np.arange(_CELLS + 1)  # a prediction of 1 has a cell of its own
    first = np.searchsorted(places, cells - slack)
    inside = np.searchsorted(places, cells + 1 + slack) - first
    with np.errstate(over="ignore"):
        slopes = np.concatenate(([0.0], np.diff(y) / np.diff(x), [0.0]))  # before each knot
    a = np.where(inside == 0, first - 1, first).clip(0, x.size - 1)
    held = [x[a], y[a], slopes[first], slopes[first + (inside > 0)]]
    if (inside > 1).any():
        b = np.where(inside > 1, first + 1, a)
        held += [x[b], y[b], slopes[np.where(inside > 1, first + 2, first + inside)]]
    crowded = (inside > 2) | ~np.isfinite(held).all(axis=0)
    around = np.stack((first - 1, first + inside + 1), axis=1).clip(0, x.size)
    return [each.tolist() for each in held], np.flatnonzero(crowded).tolist(), around.tolist()


def _pieces(name: str, x: list[float], y: list[float], first: int, last: int) -> str:
    """Return the expression between two knots."""
    if first == last:
        return _number(y[first])
    if last - first > 1:
        middle = (first + last) // 2
        left = _pieces(name, x, y, first, middle)
        right = _pieces(name, x, y, middle, last)
        return f"CASE WHEN {name} < {_number(x[middle])} THEN {left} ELSE {right} END"
    rise, width = _number(y[last] - y[first]), _number(x[last] - x[first])
    return f"{_number(y[first])} + ({name} - {_number(x[first])}) / {width} * {rise}"


def _number(value: float) -> str:
    """Return a literal with an exponent, which makes it a double and not a decimal."""
    mantissa, _, exponent = repr(float(value)).partition("e")
    return f"{mantissa}e{exponent or '0'}"


def _quoted(column: str, dialect: str) -> str:
    validate.check_choice("dialect", dialect, DIALECTS)
    reason = "it must be the name of a column"
    if not isinstance(column, str):
        raise InvalidType(argument="column", value=column, reason=reason)
    if not column or "\0" in column:
        raise InvalidInput(argument="column", value=column, reason=reason)
    opening, closing, inside = _QUOTES[dialect]
    if dialect == "bigquery":
        column = column.replace("\\", "\\\\")
    return f"{opening}{column.replace(closing, inside)}{closing}"
