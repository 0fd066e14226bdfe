"""``caldist demo``: every measure on data that ship with the package."""

from __future__ import annotations

import click

from caldist.cli import _options
from caldist.cli._streams import say


@click.command(cls=_options.Command)
def demo() -> None:
    """Evaluate every measure on six well-known classifiers."""
    from caldist.cli._demo_table import demo_text

    say(demo_text(), nl=False)
