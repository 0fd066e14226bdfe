"""The directive ``command-line-help``: the help of every command, from the program itself."""

from __future__ import annotations

from typing import Any

import click
from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

from caldist.cli import main


class CommandLineHelp(Directive):
    """A section for each command, with what ``--help`` prints."""

    def run(self) -> list[nodes.Node]:
        """Return the sections."""
        sections: list[nodes.Node] = []
        for name, command in main.commands.items():
            section = nodes.section(ids=[f"command-{name}"])
            section += nodes.title(text=f"caldist {name}")
            context = click.Context(command, info_name=f"caldist {name}", terminal_width=96)
            section += nodes.literal_block(text=command.get_help(context), language="text")
            sections.append(section)
        return sections


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("command-line-help", CommandLineHelp)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
