"""A table as an SQL expression: nested cases, so that a row meets some eight comparisons."""

from __future__ import annotations

from caldist import _validate
from caldist._util.types import Vector

# How a dialect opens and closes a quoted name, and what a closing mark inside of one becomes.
_QUOTES = {
    "ansi": ('"', '"', '""'),
    "bigquery": ("`", "`", "\\`"),
    "mysql": ("`", "`", "``"),
    "spark": ("`", "`", "``"),
    "sqlserver": ("[", "]", "]]"),
}
DIALECTS = tuple(_QUOTES)


def expression(x: Vector, y: Vector, column: str, dialect: str) -> str:
    """Return the SQL of a piecewise linear table, NULL where a score is no probability."""
    name = _quoted(column, dialect)
    body = _pieces(name, x.tolist(), y.tolist(), 0, x.size - 1)
    if x[-1] < 1:
        body = f"CASE WHEN {name} >= {_number(x[-1])} THEN {_number(y[-1])} ELSE {body} END"
    if x[0] > 0:
        body = f"CASE WHEN {name} <= {_number(x[0])} THEN {_number(y[0])} ELSE {body} END"
    return f"CASE WHEN {name} >= 0 AND {name} <= 1 THEN {body} END"


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
    _validate.check_choice("dialect", dialect, DIALECTS)
    if not isinstance(column, str):
        message = f"column is {_validate.show(column)}; it must be the name of a column."
        raise TypeError(message)
    if not column or "\0" in column:
        message = f"column is {column!r}; it must be the name of a column."
        raise ValueError(message)
    opening, closing, inside = _QUOTES[dialect]
    if dialect == "bigquery":
        column = column.replace("\\", "\\\\")
    return f"{opening}{column.replace(closing, inside)}{closing}"
