"""A lock for a file that several processes may want to replace."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_LONGEST = 255  # bytes of a file's name


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold ``path`` alone, or say at once that another process does.

    The system lets go of the lock when the process ends, however it ends. What is locked is an
    empty file beside ``path``, as that itself is replaced. It stays: whoever took it away could
    take it from under a process that has just opened it. Links to one file have one lock.

    Raises
    ------
    BlockingIOError
        If another process holds it.
    """
    if not path.parent.is_dir():
        message = f"there is no folder {str(path.parent)!r}: make it first."
        raise FileNotFoundError(message)
    handle = os.open(_beside(Path(os.path.realpath(path))), os.O_RDWR | os.O_CREAT, 0o666)
    try:
        try:
            _take(handle)
        except (BlockingIOError, PermissionError) as error:  # as Unix and as Windows say it
            message = (
                f"{str(path)!r} is in use by another run: wait until that has ended. Nothing was "
                "read or changed."
            )
            raise BlockingIOError(message) from error
        yield
    finally:
        os.close(handle)


def _beside(path: Path) -> Path:
    name = f".{path.name}.lock"
    if len(os.fsencode(name)) > _LONGEST:
        name = f".{hashlib.sha256(os.fsencode(path.name)).hexdigest()}.lock"
    return path.with_name(name)


try:
    import fcntl
except ModuleNotFoundError:  # Windows
    import msvcrt

    def _take(handle: int) -> None:
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]

else:

    def _take(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
