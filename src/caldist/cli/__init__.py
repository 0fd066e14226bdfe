"""The command line: parse, call, print.

A command imports what it needs when it runs, so that ``caldist --help`` waits for nothing.
"""

from __future__ import annotations

from typing import Any

import click

from caldist._version import __version__

__all__ = ["main"]


class _Failure(click.ClickException):
    """What the library refused; ends with the same exit code as a misspelt option."""

    exit_code = 2


class _Commands(click.Group):
    """A group whose commands report wrong input in one line on stderr."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # the reader has seen enough; click ends quietly
            raise
        except (ValueError, TypeError, OSError) as error:
            raise _Failure(str(error)) from error


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="caldist")
def main() -> None:
    """Measure how far probabilities are from calibrated."""


@main.command()
def demo() -> None:
    """Evaluate every measure on six well-known classifiers."""
    from caldist._demo import demo_text

    click.echo(demo_text(), nl=False)


@main.command()
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
    click.echo(f"{len(written)} files written; open {written[-1]}")
