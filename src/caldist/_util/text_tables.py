"""Rows of cells as text: in aligned columns, or as a Markdown table."""

from __future__ import annotations

from collections.abc import Collection, Sequence

Rows = Sequence[Sequence[str]]

_MARKS = "\\`*_{}[]#|!~$"
_ENTITY = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}


def aligned(rows: Rows, left: Collection[int]) -> list[str]:
    """Pad the columns: those numbered in ``left`` hold text and go left, the others right.

    A name with line breaks stays on one line; no name commands the terminal.
    """
    lines = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if at in left else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]


def markdown(rows: Rows, left: Collection[int]) -> list[str]:
    """Return the lines of a Markdown table; the first row is its head and taken as it is."""
    head, *body = rows
    rule = ["---" if at in left else "---:" for at in range(len(head))]
    body = [[escaped(cell) for cell in row] for row in body]
    return ["| " + " | ".join(row) + " |" for row in (head, rule, *body)]


def escaped(text: str) -> str:
    """Keep names from the data from being read as Markdown or HTML."""
    return "".join(
        _ENTITY.get(mark, f"\\{mark}" if mark in _MARKS else mark) for mark in one_line(text)
    )


def one_line(text: str) -> str:
    r"""Return text without line breaks, and without letters that a terminal takes for commands.

    Examples
    --------
    >>> from caldist._util.text_tables import one_line
    >>> one_line("two\nlines \x1b[31mred")
    'two lines �[31mred'
    """
    line = " ".join(text.split())
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in line)
