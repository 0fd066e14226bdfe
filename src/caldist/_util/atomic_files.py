"""Writing files whole or not at all.

What is written is a temporary file in the same folder, ``.caldist-`` and sixteen digits, which then
takes the place of the file. A process that is killed leaves it behind: the next one that writes to
the folder removes those that nobody has written to for a day.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)  # of Windows
_TEMPORARY = re.compile(r"\.caldist-[0-9a-f]{16}")
_ABANDONED = 24 * 3600  # seconds without a change


def write_atomically(path: Path, write: Callable[[IO[bytes]], None]) -> None:
    """Let ``write`` fill a temporary file beside ``path``, then put it in its place.

    A new file has the permissions that the process gives to new files; one that is replaced keeps
    those that it had. Where ``path`` is a link, what it points to is written, and it stays a link.
    """
    path = _place(path)
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
    """Give a name beside ``path`` for others to write to, and put what is there in its place.

    Where ``path`` is a link, what it points to is written, and it stays a link.
    """
    path = _place(path)
    temporary = _beside(path)
    try:
        yield temporary
        if path.exists():
            temporary.chmod(stat.S_IMODE(path.stat().st_mode) & 0o777)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _place(path: Path) -> Path:
    """Return the file that a path leads to, if one can be written there, in a tidy folder."""
    place = Path(os.path.realpath(path)) if path.is_symlink() else path
    if place.is_symlink():
        message = f"{str(path)!r} is a link to itself: remove it before writing."
        raise OSError(message)
    _check_place(place)
    _tidy(place.parent)
    return place


def _check_place(path: Path) -> None:
    if not path.parent.is_dir():
        message = f"{str(path.parent)!r} is not a folder: make it before writing {path.name!r}."
        raise FileNotFoundError(message)
    if path.is_dir():
        message = f"{str(path)!r} is a folder: name a file in it to write to."
        raise IsADirectoryError(message)
    if path.exists() and not path.is_file():
        message = f"{str(path)!r} is a device or a pipe, which cannot be replaced: name a file."
        raise OSError(message)


def _tidy(folder: Path) -> None:
    """Remove what writers left behind that were killed."""
    with suppress(OSError), os.scandir(folder) as entries:  # it is no condition for writing
        for entry in entries:
            if _TEMPORARY.fullmatch(entry.name):
                with suppress(OSError):
                    if entry.stat(follow_symlinks=False).st_mtime < time.time() - _ABANDONED:
                        Path(entry.path).unlink()


def _beside(path: Path) -> Path:
    return path.with_name(f".caldist-{secrets.token_hex(8)}")
