"""Rows of results as an aligned table, JSON, CSV or Markdown."""

from __future__ import annotations

import csv
import io
import json
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self

import click

from caldist._util.escaping import for_csv
from caldist._util.numbers import down, number, probability, side, up
from caldist._util.text_tables import aligned, markdown
from caldist.cli._streams import say

NOTHING = "-"  # in tables, for a number that there is none of
COUNTS = ("rows", "dropped")  # what a line counts, next to what it describes
FORMATS = ("table", "json", "csv", "markdown")

Row = Mapping[str, object]


class PValue(float):
    """A p-value, with the smallest one that as many draws can give: tables say "≤" of that."""

    least: float

    def __new__(cls, value: float, least: float) -> Self:
        found = super().__new__(cls, value)
        found.least = least
        return found


format_option = click.option(
    "--format", "style", type=click.Choice(FORMATS), default="table", show_default=True
)


@contextmanager
def noting(notes: list[str]) -> Iterator[None]:
    """Add warnings about the data to the notes, each once; others stay warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    for found in caught:
        if found.category is not UserWarning:
            warnings.warn_explicit(found.message, found.category, found.filename, found.lineno)
        elif str(found.message) not in notes:
            notes.append(str(found.message))


def show(rows: Sequence[Row], style: str, *, head: Mapping[str, Any], notes: Sequence[str]) -> None:
    """Print rows of equal columns.

    ``head`` says what was computed from what; JSON carries it and the notes. In the other formats
    the notes go below a table, and to stderr where the output is for machines. Lines of JSON have
    the same keys for columns and for summaries, ``score`` or ``file`` being null.
    """
    if style == "json":
        results = [in_json(_with_both_names(row)) for row in rows]
        text = json.dumps({**head, "results": results, "notes": notes}, indent=2, allow_nan=False)
        say(text)
        return
    columns = list(rows[0])
    if style == "csv":
        text_file = io.StringIO()
        writer = csv.writer(text_file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([_exact(row[name]) for name in columns] for row in rows)
        say(text_file.getvalue(), nl=False)
    else:
        cells = [columns, *([_rounded(row[name], name) for name in columns] for row in rows)]
        left = {
            at
            for at, name in enumerate(columns)
            if not all(isinstance(row[name], int | float | None) for row in rows)
        }
        lines = markdown(cells, left) if style == "markdown" else aligned(cells, left)
        say("\n".join(lines))
    if notes:
        to_stderr = style != "table"
        say(("" if to_stderr else "\n") + "\n".join(notes), err=to_stderr)


def _with_both_names(row: Row) -> dict[str, object]:
    ends = [end for end in ("", "_a", "_b") if f"score{end}" in row or f"file{end}" in row]
    names = [f"{name}{end}" for end in ends for name in ("score", "file")]
    return {name: row.get(name) for name in names} | dict(row)


def described(line: Row) -> str:
    """Return what a line is of: its model, its sub-group."""
    return " / ".join(str(value) for key, value in line.items() if key not in COUNTS)


def in_json(value: object) -> object:
    """Return infinite values, as of the log loss, as the text that JSON has no number for."""
    if isinstance(value, dict):
        return {name: in_json(item) for name, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return str(value).replace("inf", "Infinity").replace("nan", "NaN")
    return value


def _exact(value: object) -> object:
    if isinstance(value, str):
        return for_csv(value)
    return repr(value) if isinstance(value, float) else "" if value is None else value


def _rounded(value: object, name: str) -> str:
    if value is None:
        return NOTHING
    if isinstance(value, PValue):
        return probability(value, value.least)
    if isinstance(value, float):
        end = side(name)
        return down(value, 6) if end < 0 else up(value, 6) if end else number(value, 6)
    return f"{value:,}" if isinstance(value, int) else str(value)
