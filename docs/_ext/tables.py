"""Mark tables of words, which the style sheet puts one cell below the other on a phone.

Tables of numbers keep their columns there, and scroll.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

_COLUMNS, _LENGTH = 4, 45  # at most; of a row, in characters, on average at least


def is_of_words(table: nodes.table) -> bool:
    """Tell whether a table has few columns and long rows."""
    rows = [row for body in table.findall(nodes.tbody) for row in body.findall(nodes.row)]
    columns = max((len(row.children) for row in rows), default=0)
    length = sum(len(row.astext()) for row in rows)
    return bool(rows) and columns <= _COLUMNS and length >= _LENGTH * len(rows)


def _mark(_: Sphinx, document: nodes.document) -> None:
    for table in document.findall(nodes.table):
        if is_of_words(table):
            table["classes"].append("words")


def setup(app: Sphinx) -> dict[str, Any]:
    """Mark the tables of a page when it has been read."""
    app.connect("doctree-read", _mark)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
