"""What commands print: text whose control characters are shown, and lines that are not lost."""

from __future__ import annotations

import io
import os
import stat
import sys
from contextlib import suppress
from pathlib import Path

import click

from caldist._util.escaping import for_terminal


def say(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print text, with control characters from the data shown instead of obeyed."""
    click.echo(for_terminal(text), err=err, nl=nl)


def begin_line() -> None:
    """End the last line of a file that is appended to, if a full disk has cut it off."""
    handle = _output_file()
    if handle is None:
        return
    with suppress(OSError), Path(f"/dev/fd/{handle}").open("rb") as file:
        file.seek(-1, os.SEEK_END)
        if file.read() != b"\n":
            say("")


def keep_output() -> None:
    """Have the system write what was printed; raise if it cannot."""
    if sys.stdout is None:
        message = "standard output is closed: the lines cannot be printed."
        raise OSError(message)
    handle = _output_file()
    if handle is not None:
        os.fsync(handle)


def drop_output() -> None:
    """Forget what standard output could not take: Python would try again when it ends."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        sys.stdout = None


def _output_file() -> int | None:
    """Return the handle of standard output if it is a file, not a terminal or a pipe."""
    try:
        handle = sys.stdout.fileno()
    except (AttributeError, io.UnsupportedOperation):  # closed, or replaced by an object in memory
        return None
    return handle if stat.S_ISREG(os.fstat(handle).st_mode) else None
