"""Standard streams that are closed, full, or that nobody reads: no traceback, a true exit code."""

from __future__ import annotations

import errno
import io
import os
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import TextIO

import click

from caldist._util.escaping import for_terminal

_FULL = {
    getattr(errno, name) for name in ("ENOSPC", "EDQUOT", "EIO", "EFBIG") if name in dir(errno)
}


def say(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print text, with control characters from the data shown instead of obeyed.

    What goes to stderr is for people: where it cannot be written the command goes on, and its exit
    code tells the result.
    """
    try:
        click.echo(for_terminal(text), err=err, nl=nl)
    except OSError:
        if not err:
            raise
        _drop(sys.stderr)


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
    sys.stdout.flush()
    handle = _output_file()
    if handle is not None:
        os.fsync(handle)


def _output_file() -> int | None:
    """Return the handle of standard output if it is a file, not a terminal or a pipe."""
    try:
        handle = sys.stdout.fileno()
    except io.UnsupportedOperation:  # replaced by an object in memory
        return None
    return handle if stat.S_ISREG(os.fstat(handle).st_mode) else None


def open_missing() -> None:
    """Open the streams that were closed when the program started.

    Otherwise the next file that is opened would be one of them. Nothing comes from an input that is
    not there; output that is not there has no reader, as a pipe whose other end is closed.
    """
    if None not in (sys.stdin, sys.stdout, sys.stderr):
        return
    handle = os.open(os.devnull, os.O_RDWR)
    while handle < 3:  # the least free number is taken first
        handle = os.open(os.devnull, os.O_RDWR)
    os.close(handle)
    if sys.stdin is None:
        sys.stdin = _opened(0, "r")
    if sys.stdout is None:
        read, write = os.pipe()
        os.close(read)
        os.dup2(write, 1)
        os.close(write)
        sys.stdout = _opened(1, "w")
    if sys.stderr is None:
        sys.stderr = _opened(2, "w")


def unwritable(error: OSError) -> bool:
    """Whether an error says that there is no room, or that the disk is broken."""
    return error.errno in _FULL


def drop_output() -> None:
    """Forget what standard output could not take: Python would try again when it ends."""
    try:
        sys.stdout.flush()
    except OSError:
        _drop(sys.stdout)


def _drop(stream: TextIO) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def _opened(handle: int, mode: str) -> TextIO:
    return open(handle, mode, encoding="utf-8", closefd=False)  # type: ignore[return-value]
