"""The command line: parse, call, print.

A command imports what it needs when it runs, so that ``caldist --help`` waits for nothing.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from caldist._util.escaping import for_terminal
from caldist._util.invalid import Invalid
from caldist._util.version import __version__
from caldist.cli import _options
from caldist.cli._streams import drop_output, say
from caldist.cli.demo import demo
from caldist.cli.inference import compare, test
from caldist.cli.measure import measure
from caldist.cli.monitor import monitor
from caldist.cli.recalibrate import apply, recalibrate
from caldist.cli.report import report
from caldist.cli.summaries import summarize
from caldist.cli.verify import verify
from caldist.errors import CertificateError, ToleranceError

__all__ = ["main"]


# What is about the input; any other ValueError or TypeError is a mistake of the package.
_REFUSED = (Invalid, OSError, ImportError, ToleranceError, CertificateError)
_DEBUG = "CALDIST_DEBUG"  # in the environment: print tracebacks instead of one line
_RENAMED = {
    "repair": "caldist recalibrate",
    "merge": "caldist summarize",
    "paper": "python -m caldist.paper",
}
_EXIT_CODES = """\b
Exit codes:
  0    done
  1    a limit was exceeded, an alarm is on, or a proof does not hold
  2    wrong usage, bad input, or a file or output that cannot be read or written
  3    undecided: not enough rows to tell
  70   not enough memory, or an error in caldist itself
  130  interrupted from the keyboard
"""


class _WrongInput(click.ClickException):
    """What the library refused; ends with the same exit code as a misspelt option."""

    exit_code = 2


class _Breakdown(click.ClickException):
    """What is not the user's fault; 1 would read as a limit that was exceeded."""

    exit_code = 70


def _in_words(error: Exception, context: click.Context | None) -> str:
    """Return an error with the option in place of the argument, where there is one."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, Invalid):
        for option in _parameters(context):
            if isinstance(option, click.Option) and option.name == error.argument:
                return str(error.but(argument=_options.flag(option)))
    return str(error)


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
    if isinstance(error, _REFUSED):
        return _WrongInput(_in_words(error, context))
    first = f"{type(error).__name__}: {error}".splitlines()[0].rstrip(".: ")
    command = None if context is None else context.invoked_subcommand
    return _Breakdown(
        f"{first}. This is a bug in caldist: please report it in the project's issues, with what "
        f"'{_DEBUG}=1 caldist {command} …' prints."
    )


@contextmanager
def _ending(context: click.Context | None) -> Iterator[None]:
    """Turn whatever went wrong into a line on stderr and an exit code."""
    try:
        yield
    except (click.exceptions.Exit, click.Abort):
        raise
    except KeyboardInterrupt:  # as shells do: 1 would read as a limit that was exceeded
        say("interrupted", err=True)
        raise click.exceptions.Exit(130) from None
    except click.ClickException as error:
        raise _shown(error) from None
    except Exception as error:
        explained = _explained(error, context)
        if os.environ.get(_DEBUG, "") in {"", "0"}:
            raise _shown(explained) from error
        say(traceback.format_exc(), err=True, nl=False)
        raise click.exceptions.Exit(explained.exit_code) from None


def _shown(error: click.ClickException) -> click.ClickException:
    """Show escape sequences in a message, which click cuts out of what goes to no terminal."""
    vars(error)["message"] = for_terminal(error.message)
    return error


class _Commands(click.Group):
    """A group whose commands report what went wrong in one line on stderr."""

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run the program. An output that cannot be written is no alarm, whose exit code is 1."""
        if sys.stderr is None:  # it was closed: messages are lost, and exit codes are not
            sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 -- to the end
        try:
            run: Any = super().main  # which has overloads for its two modes
            return run(*args, **extra)
        except OSError:  # as a message on stderr
            sys.exit(_WrongInput.exit_code)
        finally:
            drop_output()

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        """Parse the options before the command; --help and --version print here."""
        with _ending(None):
            return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was asked for."""
        with _ending(ctx):
            return super().invoke(ctx)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command; one that was renamed is answered with what it is called now."""
        if args and args[0] in _RENAMED:
            ctx.fail(f"No such command {args[0]!r}: it is '{_RENAMED[args[0]]}' now.")
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 -- click's signature
        """Return the commands in the order in which people meet them, not of the alphabet."""
        return list(self.commands)


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=_EXIT_CODES,
)
@click.version_option(__version__, prog_name="caldist")
def main() -> None:
    """Measure how far probabilities are from calibrated."""


for command in (
    measure, report, test, compare, recalibrate, apply, monitor, summarize, verify, demo,
):  # fmt: skip
    main.add_command(command)
