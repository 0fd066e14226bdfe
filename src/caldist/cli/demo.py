"""``caldist demo`` and ``caldist paper``: what ships with the package."""

from __future__ import annotations

import click

from caldist.cli import _options
from caldist.cli._streams import say


@click.command(cls=_options.Command)
def demo() -> None:
    """Evaluate every measure on six well-known classifiers."""
    from caldist.cli._demo_table import demo_text

    say(demo_text(), nl=False)


@click.command(cls=_options.Command)
@click.option(
    "--out",
    default="caldist-paper",
    show_default=True,
    metavar="DIR",
    help="The folder to write to.",
)
@click.option(
    "--only",
    metavar="PART",
    help="One part: figure1, figure2, lemmas, sample_complexity or errata.",
)
@click.option(
    "--quick",
    is_flag=True,
    help="Coarser and with fewer repetitions: seconds instead of minutes.",
)
def paper(*, out: str, only: str | None, quick: bool) -> None:
    """Reproduce the figures and statements of the paper."""
    from caldist.paper import run

    written = run(out, only=only, quick=quick)
    say(f"{len(written)} files written; open {written[-1]}")
