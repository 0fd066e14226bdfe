"""``caldist verify``: proofs in files, checked by code that shares nothing with the solvers."""

from __future__ import annotations

import click

from caldist.cli import _options
from caldist.cli._streams import say
from caldist.errors import InvalidInput

_HOLDS, _FAILS, _UNREADABLE = 0, 1, 2


@click.command(cls=_options.Command)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.pass_context
def verify(context: click.Context, *, files: tuple[str, ...]) -> None:
    """Check the proofs in saved certificates.

    FILE is what the method save of a certificate wrote, of two classes or of several. Both bounds
    are computed anew from the data and the proof in it. Ends with exit code 1 if a proof does not
    hold, and with 2 if a file is no certificate; the other files are checked all the same.
    """
    context.exit(max([_check(name) for name in files]))


def _check(name: str) -> int:
    """Print what a file proves, or why it does not, and return the exit code."""
    from caldist.certificates import Certificate
    from caldist.errors import CertificateError

    try:
        certificate = Certificate.load(name).verify()
    except CertificateError as error:
        say(f"{name}: {error}", err=True)
        return _FAILS
    except (OSError, InvalidInput) as error:
        reason = getattr(error, "strerror", None)  # without it a file is named by the error itself
        say(f"{name}: {reason}" if reason else str(error), err=True)
        return _UNREADABLE
    say(f"{name}: {certificate}: the proof holds")
    return _HOLDS
