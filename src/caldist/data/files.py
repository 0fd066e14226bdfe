"""The file format of joints: a NumPy archive of arrays with a version, and nothing that runs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from caldist._util.atomic_files import write_atomically

__all__ = ["read", "write"]

_FORMAT = "caldist-joint-2"
_READABLE = ("caldist-joint-1", _FORMAT)  # the first had neither squares nor invalid rows


def write(path: str | os.PathLike[str], content: Mapping[str, Any]) -> None:
    """Write arrays to a ``.npz`` file, whole or not at all."""

    def fill(file: IO[bytes]) -> None:
        np.savez(file, format=np.str_(_FORMAT), **content)

    write_atomically(Path(path), fill)


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the arrays; a damaged or foreign file is a ``ValueError``."""
    try:
        with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as archive:
            content = {name: archive[name] for name in archive.files}
    except FileNotFoundError:
        raise
    except Exception as error:
        message = f"{os.fspath(path)!r} is not a saved joint, or it is damaged: {error}"
        raise ValueError(message) from error
    found = str(content.pop("format", "no format"))
    if found not in _READABLE:
        known = " and ".join(map(repr, _READABLE))
        message = f"{os.fspath(path)!r} has format {found!r}; this version reads {known}."
        raise ValueError(message)
    return content
