"""``Result``: what everything that is returned with structure can do."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from caldist._util.brief import Brief, LongText
from caldist._util.escaping import for_html
from caldist._util.frames import frame
from caldist._util.invalid import InvalidInput, InvalidType
from caldist._util.numbers import outwards_to, side
from caldist._util.text_tables import aligned, booktabs, is_numeric

_MOST_DIGITS = 17  # that tell any two numbers apart
_DIGITS = 6  # of the numbers in tables
_MOST_SHOWN = 200  # lines in a notebook, where nobody reads more


class Result(Brief):
    """A frozen dataclass that can be read as text, as a dict, as a frame and as a table.

    A result of several lines says so in :meth:`_lines`; any other is one line of its numbers and
    texts. What is better said in a sentence has a ``__str__`` of its own.
    """

    __slots__ = ()

    def __str__(self) -> str:
        head, body = self._table(_DIGITS)
        rows = [[_cell(value) for value in line] for line in body]
        left = {at for at, column in enumerate(zip(*body, strict=True)) if not is_numeric(column)}
        return "\n".join(aligned(rows if self._is_upright() else [head, *rows], left))

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain Python values, ready for JSON."""
        return {
            item.name: plain(getattr(self, item.name))
            for item in fields(self)  # type: ignore[arg-type]
            if item.repr
        }

    def to_frame(self, library: str = "pandas") -> Any:
        """Return the result as a data frame, a line for each part.

        Parameters
        ----------
        library : "pandas" or "polars"
            What the data frame is made by.
        """
        lines = self._lines()
        columns = {name: [line[name] for line in lines] for name in lines[0]} if lines else {}
        return frame(columns, library)

    def to_latex(self, *, digits: int = 4) -> str:
        r"""Return the result as a table of LaTeX, to be used with the package ``booktabs``.

        It has a line for each part, as :meth:`to_frame` has; one line alone stands upright, with a
        line for each number.

        Parameters
        ----------
        digits : int
            How many significant digits numbers have.
        """
        whole = isinstance(digits, numbers.Integral) and not isinstance(digits, bool)
        if not whole or not 1 <= digits <= _MOST_DIGITS:
            kind = InvalidInput if whole else InvalidType
            reason = f"it must be an integer from 1 to {_MOST_DIGITS}"
            raise kind(argument="digits", value=digits, reason=reason)
        head, body = self._table(digits)
        return LongText(booktabs(head, body, digits))

    def _table(self, digits: int) -> tuple[list[str], list[list[Any]]]:
        """Return the head and the lines of a table that is not wider than a page, if possible.

        Ends of intervals are rounded outwards to the digits that will be shown.
        """
        lines = [_rounded_outwards(line, digits) for line in self._lines()]
        if self._is_upright():
            known = [[name, value] for name, value in lines[0].items() if value not in (None, "")]
            return ["", "value"], known
        head = [str(name) for name in lines[0]] if lines else []
        return head, [list(line.values()) for line in lines]

    def _is_upright(self) -> bool:
        """Return whether the result is one line, which is easier to read as a column."""
        return type(self)._lines is Result._lines  # noqa: SLF001 -- its own

    def _lines(self) -> list[dict[str, Any]]:
        """Return the lines of the frame, all with the same columns."""
        content = self.to_dict()
        return [{key: v for key, v in content.items() if not isinstance(v, list | dict)}]

    def _repr_html_(self) -> str:
        """Show the lines as a table in a notebook; of very many the first ones."""
        lines = [_rounded_outwards(line, _DIGITS) for line in self._lines()]
        left = len(lines) - _MOST_SHOWN
        head = "".join(f"<th>{for_html(str(name))}</th>" for name in (lines[0] if lines else ()))
        body = "".join(
            "<tr>" + "".join(f"<td>{for_html(_cell(v))}</td>" for v in line.values()) + "</tr>"
            for line in lines[:_MOST_SHOWN]
        )
        more = f"<p>{left:,} more lines: see to_frame().</p>" if left > 0 else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _rounded_outwards(line: Mapping[str, Any], digits: int) -> dict[str, Any]:
    return {
        name: outwards_to(value, digits, side(str(name))) if isinstance(value, float) else value
        for name, value in line.items()
    }


def _cell(value: object) -> str:
    return (
        f"{value:.{_DIGITS}g}" if isinstance(value, float) else "" if value is None else str(value)
    )


def plain(value: Any) -> Any:
    """Return a value in terms of dicts, lists, numbers, texts and None."""
    if isinstance(value, Result):
        return value.to_dict()
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: plain(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Mapping):
        return {
            key if isinstance(key, str) else str(key): plain(item) for key, item in value.items()
        }
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value
