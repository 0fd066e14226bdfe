"""Rows of cells as text: in aligned columns, or as a Markdown table."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from caldist._util.escaping import for_line, for_markdown

Rows = Sequence[Sequence[str]]


def aligned(rows: Rows, left: Collection[int]) -> list[str]:
    """Pad the columns: those numbered in ``left`` hold text and go left, the others right.

    A name with line breaks stays on one line, and its control characters are shown.
    """
    lines = [[for_line(cell) for cell in row] for row in rows]
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
    body = [[for_markdown(cell) for cell in row] for row in body]
    return ["| " + " | ".join(row) + " |" for row in (head, rule, *body)]
