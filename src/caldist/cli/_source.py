"""Files to columns: CSV, JSON lines and Parquet, the same whatever is installed.

Text is read by the standard library, which needs nothing; DuckDB does the same work faster where it
is installed and sees the same in a file. Parquet is read by DuckDB, PyArrow or Polars.
"""

from __future__ import annotations

import gzip
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from glob import glob, has_magic
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple, Protocol
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from caldist._util.invalid import Invalid
from caldist._util.optional import how_to_install
from caldist.engines import cells
from caldist.engines.folders import refuse_lakehouses, visible
from caldist.engines.text import KINDS, TextFile, cell_of, suffix_of, unpacking
from caldist.errors import InvalidInput

_PARQUET = (".parquet", ".pq")
_KNOWN = (*KINDS, *_PARQUET)
_SHEETS = (".xlsx", ".xls", ".ods")
_GZIP = b"\x1f\x8b"
_READ_AGAIN = 2**30  # bytes of files, at most, that are read once more to say what is wrong where
_QUERIED = 50  # columns, at most, that DuckDB is asked for at once


class Columns(NamedTuple):
    """What was read.

    Attributes
    ----------
    numbers
        Doubles by name, NaN where a value is missing and ``cells.BAD`` where it is no number.
    names
        Text or numbers by name, None where one is missing.
    """

    numbers: dict[str, NDArray[np.float64]]
    names: dict[str, NDArray[np.object_]]


class Cell(NamedTuple):
    """Where a cell is, what stands there, and why it is no number, if it is none."""

    where: str
    text: str
    why: cells.Why | None


class _File(Protocol):
    """A file whose columns can be read by name; those that it lacks are missing throughout."""

    path: Path
    columns: list[str]
    twice: set[str]

    def read(
        self, numbers: Sequence[str], names: Sequence[str], limit: int | None
    ) -> tuple[list[NDArray[np.float64]], list[NDArray[np.object_]]]: ...

    def cell(self, row: int, name: str) -> Cell: ...


class Source:
    """One or more files of the same kind as one table.

    A folder ``name=value`` around all of them gives a column, which they must not have themselves.
    """

    def __init__(self, files: Sequence[_File]) -> None:
        self._files = files
        self._folders = _columns_of_folders(files)
        found = dict.fromkeys(name for file in files for name in file.columns)
        for folders in self._folders:
            found |= dict.fromkeys(folders)
        self.columns = list(found)
        self._sizes: list[int] = []

    @property
    def twice(self) -> set[str]:
        """The names that several columns of a file have."""
        return {name for file in self._files for name in file.twice}

    @property
    def n_rows(self) -> int | None:
        """How many rows there are, where files say so without being read and DuckDB reads them."""
        counts: list[int | None] = [getattr(file, "n_rows", None) for file in self._files]
        known = [count for count in counts if count is not None]
        return sum(known) if len(known) == len(counts) else None

    @property
    def is_plain(self) -> bool:
        """Whether DuckDB sees the same columns in the files."""
        return all(getattr(file, "is_plain", True) for file in self._files)

    @property
    def notes(self) -> list[str]:
        """What there is to say about how files were read."""
        return [note for file in self._files for note in getattr(file, "notes", [])]

    def read(
        self, numbers: Sequence[str], names: Sequence[str] = (), rows: int | None = None
    ) -> Columns:
        """Return columns, or some rows of them."""
        for file in self._files:
            for name in (*numbers, *names):
                if name in file.twice:
                    reason = f"has two columns called {name!r}"
                    raise InvalidInput(argument=str(file.path), reason=reason, remedy="Rename one.")
        parts, sizes, left = [], [], rows
        for file, folders in zip(self._files, self._folders, strict=True):
            own = [[name for name in asked if name not in folders] for asked in (numbers, names)]
            # A column may be read as both, and one at least tells how many rows there are.
            found = file.read(own[0], own[1] or ([] if own[0] else file.columns[:1]), left)
            size = next((column.size for part in found for column in part), 0)
            parts.append(
                Columns(
                    dict(zip(own[0], found[0], strict=True))
                    | {
                        name: np.full(size, cells.number(folders[name]))
                        for name in numbers
                        if name in folders
                    },
                    dict(zip(own[1], found[1][: len(own[1])], strict=True))
                    | {
                        name: np.array([cells.name(folders[name])] * size, dtype=object)
                        for name in names
                        if name in folders
                    },
                )
            )
            sizes.append(size)
            left = None if left is None else left - size
            if left == 0:
                break
        self._sizes = sizes
        if sum(sizes) == 0:
            raise InvalidInput(argument=str(self._files[0].path), reason="has no rows")
        return Columns(
            {name: np.concatenate([part.numbers[name] for part in parts]) for name in numbers},
            {name: np.concatenate([part.names[name] for part in parts]) for name in names},
        )

    def cell(self, row: int, name: str) -> Cell:
        """Return where a cell of what was read last is, and what stands there."""
        for file, folders, size in zip(self._files, self._folders, self._sizes, strict=False):
            if row < size:
                if name in folders:
                    why = cells.why_not(folders[name])
                    return Cell(f"the folder of {file.path}", folders[name], why)
                return file.cell(row, name)
            row -= size
        message = f"there is no row {row}."
        raise IndexError(message)


class SomeRows(Source):
    """Some rows of files, which say the places that they have there."""

    def __init__(self, source: Source, rows: NDArray[np.intp]) -> None:
        self._source, self._chosen, self.columns = source, rows, source.columns

    @property
    def notes(self) -> list[str]:
        """What there is to say about how files were read."""
        return self._source.notes

    def read(
        self, numbers: Sequence[str], names: Sequence[str] = (), rows: int | None = None
    ) -> Columns:
        """Return columns, or some rows of them."""
        found, chosen = self._source.read(numbers, names), self._chosen[:rows]
        return Columns(
            {name: column[chosen] for name, column in found.numbers.items()},
            {name: column[chosen] for name, column in found.names.items()},
        )

    def cell(self, row: int, name: str) -> Cell:
        """Return where a cell of what was read last is, and what stands there."""
        return self._source.cell(int(self._chosen[row]), name)


def _columns_of_folders(files: Sequence[_File]) -> list[dict[str, str]]:
    if not all("=" in file.path.parent.name for file in files):
        return [{} for _ in files]
    from caldist.engines.files import refuse_columns_twice

    found = []
    for file in files:
        refuse_columns_twice(file.columns, [str(file.path)])
        keys = (folder.partition("=") for folder in file.path.parent.parts)
        found.append({key: unquote(value) for key, is_key, value in keys if is_key})
    return found


def open_source(files: Sequence[str]) -> Source:
    """Open one or more files, folders or globs of the same kind as one table."""
    paths = [path for name in files for path in matches(name)]
    suffixes = {suffix_of(path.name) for path in paths}
    for path in paths:
        if suffix_of(path.name) not in _KNOWN:
            raise InvalidInput(
                argument=str(path),
                reason=f"is of an unknown kind, since its name does not end in one of "
                f"{', '.join(_KNOWN)}, or in one of these and .gz, .bz2, .xz or .zst",
                remedy="Save the sheet as CSV." if path.suffix.lower() in _SHEETS else "",
            )
    kinds = {"parquet" if suffix in _PARQUET else KINDS[suffix] for suffix in suffixes}
    if len(kinds) > 1:
        raise InvalidInput(
            argument=", ".join(files),
            reason=f"has files of several kinds ({', '.join(sorted(suffixes))})",
            remedy="Pass one kind at a time.",
        )
    if "parquet" in kinds:
        return Source(_parquet(paths))
    return Source([_Text(path) for path in paths])


def matches(name: str) -> list[Path]:
    """Return the files that a name, a folder or a pattern stands for."""
    path = Path(name)
    if path.is_dir():
        below = [file for file in path.rglob("*") if suffix_of(file.name) in _KNOWN]
        if found := [file for file in visible(below, name) if file.is_file()]:
            return found
        message = (
            f"{name}: there is no file in this folder whose name ends in {', '.join(_KNOWN)} and "
            "does not start with _ or a dot."
        )
        raise FileNotFoundError(message)
    if path.is_file():
        return [path]
    paths = visible(map(Path, glob(name, recursive=True)), name)  # noqa: PTH207 -- a pattern may be absolute
    if has_magic(name) and paths:
        return paths
    hidden = " (names that start with _ or a dot are left out)" if has_magic(name) else ""
    message = f"{name}: there is no such file{hidden}."
    if "://" in name:
        message = (
            f"{name}: only local files are read here. In Python caldist.engines.open_files(…, "
            "remote=True) reads others, for caldist.summarize."
        )
    raise FileNotFoundError(message)


def may_be_read_again(files: Sequence[str]) -> bool:
    """Whether files are small enough for the reader that knows the place of each cell."""
    paths = [path for name in files for path in matches(name)]
    return sum(path.stat().st_size for path in paths) <= _READ_AGAIN


# -- standard input ------------------------------------------------------------------------------


@contextmanager
def on_disk(files: Sequence[str]) -> Iterator[list[str]]:
    """Give the paths of files; of ``-``, standard input, that of a copy while it lasts."""
    if "-" not in files:
        refuse_lakehouses(map(Path, files))
        yield list(files)
        return
    if len(files) > 1:
        reason = "cannot be combined with files"
        remedy = "Pass one or the other."
        raise InvalidInput(argument="- (standard input)", reason=reason, remedy=remedy)
    with tempfile.TemporaryDirectory() as folder:
        path = str(_copy_of_stdin(Path(folder)))
        try:
            yield [path]
        except Invalid as error:
            raise _of_stdin(error, path) from error


def _of_stdin(error: Invalid, path: str) -> Invalid:
    """Return an error about the copy of standard input as one about standard input."""
    if path not in error.place:
        return error
    about = "standard input" if error.argument == path else error.argument
    return error.but(argument=about, place=error.place.replace(path, "standard input"))


def _copy_of_stdin(folder: Path) -> Path:
    """Keep standard input in a file whose name says what it holds."""
    path = folder / "stdin"
    with path.open("wb") as file:
        if sys.stdin is not None:  # it was closed: nothing comes from it
            shutil.copyfileobj(sys.stdin.buffer, file)
    with path.open("rb") as file:
        head = file.read(64)
    if not head:
        remedy = "Pipe a table or a summary into it."
        raise InvalidInput(argument="standard input", reason="is empty", remedy=remedy)
    packed = ""
    if head.startswith(_GZIP):
        packed = ".gz"
        with unpacking("standard input"), gzip.open(path) as file:
            head = file.read(64)
    text = ".jsonl" if head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{" else ".csv"
    suffix = {b"PAR1": ".parquet", b"PK\x03\x04": ".npz"}.get(head[:4], text)
    return path.rename(folder / f"stdin{suffix}{packed}")


# -- text ----------------------------------------------------------------------------------------


class _Text:
    """CSV or JSON lines."""

    def __init__(self, path: Path) -> None:
        self._text = TextFile(path, KINDS[suffix_of(path.name)])
        self.path, self.columns, self.twice = path, self._text.columns, self._text.twice
        self.is_plain = self._text.is_plain
        self.notes: list[str] = []

    def read(
        self, numbers: Sequence[str], names: Sequence[str], limit: int | None
    ) -> tuple[list[NDArray[np.float64]], list[NDArray[np.object_]]]:
        # For a few rows, and for many columns, planning a query takes longer than reading.
        large = limit is None and len(numbers) + len(names) <= _QUERIED
        plain = self._text.kind == "csv" and self._text.is_plain
        if large and plain and find_spec("duckdb") is not None:
            from caldist.engines.text_by_duckdb import read_by_duckdb

            found = read_by_duckdb(self._text, numbers, names, limit)
            if found is not None:
                return found
        content = self._text.cells([*numbers, *names], limit)
        if self._text.encoding == "cp1252":
            note = f"{self.path} is not UTF-8: its names are read as Windows-1252."
            self.notes = [note]
        decimal = self._text.decimal
        return (
            [cells.numbers(column, decimal) for column in content[: len(numbers)]],
            [as_names(column) for column in content[len(numbers) :]],
        )

    def cell(self, row: int, name: str) -> Cell:
        place = self._text.position(name)
        for at, (line, values) in enumerate(self._text.rows()):
            if at == row:
                found = cell_of(values, place)
                text = "" if found is None else str(found)
                return Cell(
                    f"{self.path}, line {line}", text, cells.why_not(text, self._text.decimal)
                )
        raise InvalidInput(argument=str(self.path), reason="has changed while it was read")


def as_names(column: Sequence[object] | NDArray[np.object_]) -> NDArray[np.object_]:
    """Return a column of names, None where one is missing."""
    found = np.empty(len(column), dtype=object)
    found[:] = [cells.name(cell) for cell in column]
    return found


# -- Parquet -------------------------------------------------------------------------------------


def _parquet(paths: Sequence[Path]) -> Sequence[_File]:
    if find_spec("duckdb") is not None:
        from caldist.cli._parquet import DuckParquet
        from caldist.engines.files import connect

        connection = connect()
        return [DuckParquet(path, connection) for path in paths]
    for package in ("pyarrow", "polars"):
        if find_spec(package) is not None:
            from caldist.cli._parquet import FrameParquet

            return [FrameParquet(path, package) for path in paths]
    message = (
        f"{paths[0]} is Parquet, which DuckDB, PyArrow or Polars read, and none of them is "
        f"installed: {how_to_install('engines')}"
    )
    raise ImportError(message)
