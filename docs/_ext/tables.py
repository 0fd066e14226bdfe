"""Mark tables of words and of numbers, for the style sheet.

On a phone, words stand one cell below the other. Numbers keep their columns there, and scroll; a
cell of them is not broken.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

_COLUMNS, _ROW = 4, 45  # of words: columns at most; characters of a row, on average at least
_CELL = 32  # of numbers: characters of a cell, at most


def kind(table: nodes.table) -> str:
    """Return "words", "numbers", or nothing for a table in between."""
    rows = [row for body in table.findall(nodes.tbody) for row in body.findall(nodes.row)]
    cells = [[len(cell.astext()) for cell in row.children] for row in rows]
    if not cells:
        return ""
    if max(map(len, cells)) <= _COLUMNS and sum(map(sum, cells)) >= _ROW * len(cells):
        return "words"
    return "numbers" if max(map(max, cells)) <= _CELL else ""


def _mark(_: Sphinx, document: nodes.document) -> None:
    for table in document.findall(nodes.table):
        table["classes"] += kind(table).split()


def setup(app: Sphinx) -> dict[str, Any]:
    """Mark the tables of a page when it has been read."""
    app.connect("doctree-read", _mark)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
