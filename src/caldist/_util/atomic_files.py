"""Writing files whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)  # of Windows


def write_atomically(path: Path, write: Callable[[IO[bytes]], None]) -> None:
    """Let ``write`` fill a temporary file beside ``path``, then put it in its place.

    A new file has the permissions that the process gives to new files; one that is replaced keeps
    those that it had.
    """
    _check_place(path)
    replaced = stat.S_IMODE(path.stat().st_mode) & 0o777 if path.exists() else None
    # The kernel takes the process's mask off this mode: asking for the mask would change it for a
    # moment, for every thread.
    mode = 0o666 if replaced is None else replaced
    temporary = _beside(path)
    handle = os.open(temporary, _NEW_FILE, mode)
    try:
        with os.fdopen(handle, "wb") as file:
            if replaced is not None:
                temporary.chmod(replaced)  # what the mask took off
            write(file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give a name beside ``path`` for others to write to, and put what is there in its place."""
    _check_place(path)
    temporary = _beside(path)
    try:
        yield temporary
        if path.exists():
            temporary.chmod(stat.S_IMODE(path.stat().st_mode) & 0o777)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _check_place(path: Path) -> None:
    if not path.parent.is_dir():
        message = f"{str(path.parent)!r} is not a folder: make it before writing {path.name!r}."
        raise FileNotFoundError(message)
    if path.is_dir():
        message = f"{str(path)!r} is a folder: name a file in it to write to."
        raise IsADirectoryError(message)


def _beside(path: Path) -> Path:
    return path.with_name(f".caldist-{secrets.token_hex(8)}")
