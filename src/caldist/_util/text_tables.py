"""Rows of cells as text: in aligned columns, as a Markdown table, or as one of LaTeX."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from caldist._util.escaping import for_latex, for_line, for_markdown

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


def booktabs(head: Sequence[str], body: Sequence[Sequence[object]], digits: int) -> str:
    r"""Return a table of LaTeX: numbers to the right, with so many significant digits.

    Examples
    --------
    >>> from caldist._util.text_tables import booktabs
    >>> print(booktabs(["model", "p_value"], [["a & b", 1.25e-7]], 2))
    \begin{tabular}{lr}
    \toprule
    model & p\_value \\
    \midrule
    a \& b & $1.2 \times 10^{-7}$ \\
    \bottomrule
    \end{tabular}
    """
    columns = list(zip(*body, strict=True)) if body else [()] * len(head)
    align = "".join("r" if is_numeric(column) else "l" for column in columns)
    lines = [" & ".join(map(for_latex, head))]
    lines += [" & ".join(_in_latex(cell, digits) for cell in row) for row in body]
    first, *others = [f"{line} \\\\" for line in lines]
    return "\n".join(
        [
            f"\\begin{{tabular}}{{{align}}}", r"\toprule", first, r"\midrule", *others,
            r"\bottomrule", r"\end{tabular}",
        ]
    )  # fmt: skip


def is_numeric(column: Sequence[object]) -> bool:
    """Return whether a column holds numbers alone, as far as it holds anything."""
    known = [cell for cell in column if cell is not None]
    return bool(known) and all(type(cell) in {int, float} for cell in known)


def _in_latex(cell: object, digits: int) -> str:
    """Return a cell; negative numbers and powers of ten need mathematics."""
    if cell is None:
        return ""
    if not isinstance(cell, int | float) or isinstance(cell, bool):
        return for_latex(str(cell))
    if math.isinf(cell):
        return r"$\infty$" if cell > 0 else r"$-\infty$"
    text = str(cell) if isinstance(cell, int) else f"{cell:.{digits}g}"
    number, _, power = text.partition("e")
    if power:
        number += rf" \times 10^{{{int(power)}}}"
    return f"${number}$" if power or number.startswith("-") else number
