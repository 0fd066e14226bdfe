"""The directive ``errata``: the paper's errors, as ``python -m caldist.paper`` lists them."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

from caldist.paper import errata


class Errata(Directive):
    """A section for each error: what is printed, what it should read, what shows it."""

    def run(self) -> list[nodes.Node]:
        """Return the sections."""
        table = errata.compute(errata.QUICK).table("errata")
        columns = ("printed", "should read", "why")
        sections: list[nodes.Node] = []
        for number, where, *texts in table.select("number", "where", *columns):
            section = nodes.section(ids=[f"erratum-{number}"])
            section += nodes.title(text=f"{number}. {where}")
            for column, text in zip(columns, texts, strict=True):
                paragraph = nodes.paragraph()
                paragraph += nodes.strong(text=f"{column.capitalize()}: ")
                paragraph += nodes.Text(str(text))
                section += paragraph
            sections.append(section)
        return sections


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive, and read the table anew when it changes."""
    app.add_directive("errata", Errata)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
