"""The command line: parse, call, print.

A command imports what it needs when it runs, so that ``caldist --help`` waits for nothing.
"""

from __future__ import annotations

import io
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from caldist._util.escaping import for_terminal
from caldist._version import __version__
from caldist.cli._refusals import is_refusal
from caldist.cli._streams import drop_output, open_missing, say, unwritable
from caldist.cli.demos import demo, paper
from caldist.cli.inference import compare, test
from caldist.cli.measure import measure
from caldist.cli.monitor import monitor
from caldist.cli.repair import apply, repair
from caldist.cli.report import report
from caldist.cli.summaries import merge, summarize
from caldist.cli.verify import verify

__all__ = ["main"]


_OPTIONS = {"n_resamples": "resamples", "rng": "seed"}  # what the library calls differently
_EXIT_CODES = """\b
Exit codes:
  0    done
  1    a limit was exceeded, an alarm is on, or a proof does not hold
  2    wrong usage or bad input
  3    undecided: not enough rows to tell
  70   not enough memory, or an error in caldist itself
  74   the output cannot be written: the disk is full or broken
  130  interrupted from the keyboard
  141  nobody reads the output any more, or it is closed
"""


class _WrongInput(click.ClickException):
    """What the library refused; ends with the same exit code as a misspelt option."""

    exit_code = 2


class _Breakdown(click.ClickException):
    """What is not the user's fault; 1 would read as a limit that was exceeded."""

    exit_code = 70


class _Unwritable(click.ClickException):
    """What the disk could not take."""

    exit_code = 74


def _with_option(said: str, context: click.Context | None) -> str:
    """Return a message with the option in place of the argument that it begins with, if any."""
    name, verb, rest = said.partition(" is ")
    name = _OPTIONS.get(name, name)
    for option in _parameters(context):
        if isinstance(option, click.Option) and option.name == name:
            return f"{max(option.opts, key=len)}{verb}{rest}"
    return said


def _parameters(context: click.Context | None) -> list[click.Parameter]:
    """Return those of the command that was asked for."""
    if context is None or context.invoked_subcommand is None:
        return []
    assert isinstance(context.command, click.Group)  # noqa: S101 -- whose context it is
    command = context.command.get_command(context, context.invoked_subcommand)
    return [] if command is None else command.params


def _explained(error: Exception, context: click.Context | None) -> click.ClickException:
    """Return an error as one line and an exit code."""
    if isinstance(error, MemoryError):
        return _Breakdown("not enough memory" + (f": {error}" if str(error) else "."))
    if isinstance(error, OSError) and unwritable(error):
        return _Unwritable(f"the output cannot be written: {error}")
    if is_refusal(error):
        said = str(error).partition("\n\n")[0]  # DuckDB goes on and on
        return _WrongInput(_with_option(said, context))
    first = f"{type(error).__name__}: {error}".splitlines()[0].rstrip(".: ")
    command = None if context is None else context.invoked_subcommand
    return _Breakdown(
        f"{first}. This is a bug in caldist: please report it in the project's issues, with what "
        f"'caldist --debug {command} …' prints."
    )


@contextmanager
def _ending(context: click.Context | None) -> Iterator[None]:
    """Turn whatever went wrong into a line on stderr and an exit code."""
    try:
        yield
    except (click.ClickException, click.exceptions.Exit, click.Abort):
        raise
    except KeyboardInterrupt:  # as shells do: 1 would read as a limit that was exceeded
        say("interrupted", err=True)
        raise click.exceptions.Exit(130) from None
    except BrokenPipeError:  # the reader has seen enough
        raise click.exceptions.Exit(141) from None
    except Exception as error:
        explained = _explained(error, context)
        if context is None or not context.params.get("debug", False):
            raise explained from error
        say(traceback.format_exc(), err=True, nl=False)
        raise click.exceptions.Exit(explained.exit_code) from None


class _Commands(click.Group):
    """A group whose commands report what went wrong in one line on stderr."""

    def main(self, *args: Any, standalone_mode: bool = True, **extra: Any) -> Any:
        """Run the program and end with one of its exit codes, whatever the standard streams are."""
        run: Any = super().main  # which has overloads for the two modes
        if not standalone_mode:
            return run(*args, standalone_mode=False, **extra)
        open_missing()
        try:
            code = run(*args, standalone_mode=False, **extra)
        except click.ClickException as error:
            # click cuts escape sequences out of what goes to no terminal; they are to be seen.
            vars(error)["message"] = for_terminal(error.message)
            text = io.StringIO()
            error.show(text)
            say(text.getvalue(), err=True, nl=False)
            code = error.exit_code
        drop_output()
        sys.exit(code)

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        """Parse the options before the command; --help and --version print here."""
        with _ending(None):
            return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was asked for."""
        with _ending(ctx):
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 -- click's signature
        """Return the commands in the order in which people meet them, not of the alphabet."""
        return list(self.commands)


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=_EXIT_CODES,
)
@click.version_option(__version__, prog_name="caldist")
@click.option("--debug", is_flag=True, help="Print the traceback of an error instead of one line.")
def main(*, debug: bool) -> None:
    """Measure how far probabilities are from calibrated."""


for command in (
    measure, report, test, compare, repair, apply, monitor, summarize, merge, verify, demo, paper,
):  # fmt: skip
    main.add_command(command)
