"""The directive ``errata``: the paper's errors, from the table that ``caldist paper`` wrote."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

_TABLE = Path(__file__).parent.parent / "paper" / "errata.csv"


class Errata(Directive):
    """A section for each error: what is printed, what it should read, what shows it."""

    def run(self) -> list[nodes.Node]:
        """Return the sections."""
        sections: list[nodes.Node] = []
        with _TABLE.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                section = nodes.section(ids=[f"erratum-{row['number']}"])
                section += nodes.title(text=f"{row['number']}. {row['where']}")
                for column in ("printed", "should read", "why"):
                    paragraph = nodes.paragraph()
                    paragraph += nodes.strong(text=f"{column.capitalize()}: ")
                    paragraph += nodes.Text(row[column])
                    section += paragraph
                sections.append(section)
        return sections


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive, and read the table anew when it changes."""
    app.add_directive("errata", Errata)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
