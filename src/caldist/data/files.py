"""The file format of joints and certificates: named arrays with a version, and nothing that runs.

A file is a NumPy archive: a zip archive whose members are arrays, stored as they are, one of which
names the format. Whoever wrote the file: what is read has passed its checksum and is no larger than
the file.
"""

from __future__ import annotations

import io
import math
import os
import struct
import zipfile
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from caldist._util.atomic_files import write_atomically
from caldist._util.invalid import InvalidInput, InvalidType, clause_of

JOINT = "caldist-joint-1"
JOINT_ARRAYS = frozenset(
    {"prediction", "mass0", "mass1", "weight_square0", "weight_square1", "radius"}
    | {"bits", "cell", "count0", "count1", "place0", "place1", "square0", "square1"}
    | {"n_rows", "invalid"}
)


def write(
    path: str | os.PathLike[str], content: Mapping[str, Any], *, format_name: str = JOINT
) -> None:
    """Write arrays to a ``.npz`` file, whole or not at all."""
    arrays: dict[str, Any] = {name: np.asarray(values) for name, values in content.items()}
    for name, array in arrays.items():
        if array.dtype.hasobject:  # NumPy would pickle it
            reason = "only numbers can be saved"
            raise InvalidType(argument=name, value=content[name], reason=reason)

    def fill(file: IO[bytes]) -> None:
        np.savez(file, format=np.str_(format_name), **arrays)

    write_atomically(Path(path), fill)


def read(
    path: str | os.PathLike[str],
    *,
    format_name: str = JOINT,
    arrays: Collection[str] = JOINT_ARRAYS,
    what: str = "a saved joint",
) -> dict[str, NDArray[Any]]:
    """Read the arrays of a file; a damaged or foreign one is an ``InvalidInput``.

    ``arrays`` are the names that may be in a file of the format; ``what`` is what messages call it.
    """
    name = os.fspath(path)
    with open_to_read(path, what) as file:
        try:
            found, content = _read_members(file, format_name, arrays)
        except MemoryError:
            raise
        except Exception as error:
            reason = f"is not {what}, or it is damaged: {clause_of(error)}"
            raise InvalidInput(argument=name, reason=reason) from error
    if found != format_name:
        raise InvalidInput(
            argument=name,
            reason=f"is not {what}: its format is {found!r}, and this version reads "
            f"{format_name!r}",
        )
    return content


def open_to_read(path: str | os.PathLike[str], what: str) -> IO[bytes]:
    """Open a file; a folder, or a file that may not be read, is an error that says so."""
    name = os.fspath(path)
    try:
        return Path(path).open("rb")
    except (IsADirectoryError, PermissionError) as error:
        if Path(path).is_dir():  # which Windows, too, calls a matter of permission
            message = f"{name!r} is a folder, not {what}: name a file in it."
            raise IsADirectoryError(message) from error
        message = f"{name!r} may not be read: change the permissions of the file or of its folder."
        raise PermissionError(message) from error


def _read_members(
    file: IO[bytes], format_name: str, arrays: Collection[str]
) -> tuple[str, dict[str, NDArray[Any]]]:
    """Return the name of the file's format and, if it is the wanted one, the other arrays."""
    size = file.seek(0, os.SEEK_END)
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        names = [member.filename.removesuffix(".npy") for member in members]
        if len(set(names)) < len(names):
            [(name, _)] = Counter(names).most_common(1)
            raise InvalidInput(argument=name, reason="is the name of two arrays")
        for name, member in zip(names, members, strict=True):
            if member.compress_type != zipfile.ZIP_STORED:
                raise InvalidInput(argument=name, reason="is compressed, which caldist never does")
        if sum(member.file_size for member in members) > size:
            raise InvalidInput(argument="its content", reason="would be larger than the file")
        if _end_of(file, members) != archive.start_dir:
            raise InvalidInput(argument="its list of arrays", reason="hides or lacks one")
        if "format" not in names:
            return "unknown", {}
        found = str(_read_array(archive, "format"))
        if found != format_name:
            return found, {}
        names.remove("format")
        for name in names:
            if name not in arrays:
                raise InvalidInput(argument=name, reason=f"is no array of {format_name}")
        return found, {name: _read_array(archive, name) for name in names}


def _end_of(file: IO[bytes], members: Sequence[zipfile.ZipInfo]) -> int:
    """Return where the listed members end, if one begins where another ends; else -1.

    A damaged list may leave out the last ones, and no checksum would notice.
    """
    end = 0
    for member in members:
        if member.header_offset != end:
            return -1
        file.seek(end + 26)  # of the local header's 30 bytes: how long the name and the extras are
        end += 30 + sum(struct.unpack("<HH", file.read(4))) + member.file_size
    return end


def _read_array(archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    """Read a member whole, so that its checksum counts, and make an array of all its bytes."""
    data = archive.read(f"{name}.npy")
    head = io.BytesIO(data)
    if np.lib.format.read_magic(head) != (1, 0):
        reason = "is in a version of NumPy's format that caldist never writes"
        raise InvalidInput(argument=name, reason=reason)
    shape, _, dtype = np.lib.format.read_array_header_1_0(head)
    if len(shape) > 1 or dtype.kind not in ("biuf" if shape else "biufU"):
        reason = "is neither a vector of numbers nor a single number or word"
        raise InvalidInput(argument=name, reason=reason)
    start = head.tell()
    if (declared := math.prod(shape) * dtype.itemsize) != len(data) - start:
        reason = f"should have {declared} bytes, but has {len(data) - start}"
        raise InvalidInput(argument=name, reason=reason)
    return np.ndarray(shape, dtype, buffer=data, offset=start).copy()
