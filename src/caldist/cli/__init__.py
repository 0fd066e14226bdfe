"""The command line: parse, call, print.

A command imports what it needs when it runs, so that ``caldist --help`` waits for nothing.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from caldist._version import __version__
from caldist.cli.demos import demo, paper
from caldist.cli.inference import compare, test
from caldist.cli.measure import measure
from caldist.cli.report import report
from caldist.cli.summaries import merge, summarize

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
        except KeyboardInterrupt:  # as shells do: 1 would read as a limit that was exceeded
            click.echo("interrupted", err=True)
            ctx.exit(130)
        except BrokenPipeError:  # the reader has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(141)
        except (ValueError, TypeError, OSError, ImportError, ArithmeticError) as error:
            raise _Failure(str(error).partition("\n\n")[0]) from error  # DuckDB goes on and on

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 -- click's signature
        """Return the commands in the order in which people meet them, not of the alphabet."""
        return list(self.commands)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="caldist")
def main() -> None:
    """Measure how far probabilities are from calibrated."""


for command in (measure, report, test, compare, summarize, merge, demo, paper):
    main.add_command(command)
