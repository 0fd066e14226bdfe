"""Files to columns: CSV, Parquet and JSON lines, by DuckDB where it is installed.

Without DuckDB the standard library reads CSV and JSON lines: the same columns, more slowly.
"""

from __future__ import annotations

import csv
import json
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from glob import glob, has_magic
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from caldist._util.optional import how_to_install

_JSON_LINES = (".jsonl", ".ndjson")
_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_SEARCHED = 100  # columns that are looked for by name


class Source(Protocol):
    """Columns that can be read by name."""

    columns: list[str]

    def read(self, names: Sequence[str], rows: int | None = None) -> dict[str, NDArray[Any]]:
        """Return columns, numeric ones with NaN where a value is missing; or some rows of them."""
        ...


@contextmanager
def on_disk(files: Sequence[str]) -> Iterator[list[str]]:
    """Give the paths of files; of ``-``, standard input, that of a copy while it lasts."""
    if "-" not in files:
        yield list(files)
        return
    if len(files) > 1:
        message = "- (standard input) cannot be combined with files: pass one or the other."
        raise ValueError(message)
    with tempfile.TemporaryDirectory() as folder:
        yield [str(_copy_of_stdin(Path(folder)))]


def _copy_of_stdin(folder: Path) -> Path:
    """Keep standard input in a file whose name says what it holds."""
    stream = sys.stdin.buffer
    head = stream.read(4)
    if not head:
        message = "standard input is empty: pipe a table or a summary into it."
        raise ValueError(message)
    text = ".jsonl" if head.lstrip()[:1] == b"{" else ".csv"
    suffix = {b"PAR1": ".parquet", b"PK\x03\x04": ".npz"}.get(head, text)
    path = folder / f"stdin{suffix}"
    with path.open("wb") as file:
        file.write(head)
        shutil.copyfileobj(stream, file)
    return path


def open_source(files: Sequence[str]) -> Source:
    """Open one or more files or globs of the same kind as one table."""
    if find_spec("duckdb") is not None:
        return _DuckTables(files)
    return _TextTables(files)


class _DuckTables:
    """Files read by DuckDB."""

    def __init__(self, files: Sequence[str]) -> None:
        from caldist.engines import open_files

        self._relation = open_files(files)
        self.columns = list(self._relation.columns)

    def read(self, names: Sequence[str], rows: int | None = None) -> dict[str, NDArray[Any]]:
        import duckdb

        table = self._relation if rows is None else self._relation.limit(rows)
        try:
            if 0 < len(names) <= _SEARCHED:  # DuckDB looks for each of them among all columns
                table = table.select(*map(duckdb.ColumnExpression, dict.fromkeys(names)))
            found = table.fetchnumpy()
        except duckdb.OutOfMemoryException as error:
            raise MemoryError(str(error)) from error
        except duckdb.Error as error:
            message = f"the file cannot be read: {error}"
            raise ValueError(message) from error
        return {name: _filled(found[name]) for name in names}


def _filled(column: Any) -> NDArray[Any]:
    """Return a column with NaN, or None in text, for its missing values."""
    if not np.ma.is_masked(column):
        return np.asarray(column)
    if column.dtype.kind in "biuf":
        return np.asarray(column.astype(np.float64).filled(np.nan))
    filled: NDArray[Any] = column.data.astype(object)
    filled[np.ma.getmaskarray(column)] = None  # filled(None) would write "?"
    return filled


class _TextTables:
    """CSV and JSON lines, read by the standard library."""

    def __init__(self, files: Sequence[str]) -> None:
        self._paths = [path for name in files for path in matches(name)]
        self._suffix = _suffix_of_all(self._paths)
        self.columns = list(next(self._rows(), {}))
        if not self.columns:
            message = f"{self._paths[0]} has no rows."
            raise ValueError(message)

    def _rows(self) -> Iterator[dict[str, Any]]:
        for path in self._paths:
            with path.open(encoding="utf-8-sig", newline="") as file:
                if self._suffix in _JSON_LINES:
                    yield from map(json.loads, filter(str.strip, file))
                else:
                    yield from _csv_rows(path, file, _DELIMITERS[self._suffix])

    def read(self, names: Sequence[str], rows: int | None = None) -> dict[str, NDArray[Any]]:
        try:
            lines = ([row.get(name) for name in names] for row in islice(self._rows(), rows))
            columns = zip(*lines, strict=True)
            return {name: _parsed(column) for name, column in zip(names, columns, strict=True)}
        except (csv.Error, UnicodeDecodeError, json.JSONDecodeError) as error:
            message = f"the file cannot be read: {error}"
            raise ValueError(message) from error


def _csv_rows(path: Path, file: IO[str], delimiter: str) -> Iterator[dict[str, Any]]:
    """Give rows by the names of the header, with semicolons where it has no other delimiter."""
    head = file.readline()
    if delimiter not in head and ";" in head:
        delimiter = ";"
    file.seek(0)
    lines = csv.DictReader(file, delimiter=delimiter)
    times = Counter(lines.fieldnames or ())
    twice = next((name for name, number in times.items() if number > 1), None)
    if twice is not None:
        message = f"{path} has two columns called {twice!r}: rename one."
        raise ValueError(message)
    for row in lines:
        if None in row:
            message = f"{path}, line {lines.line_num}, has more values than the header has names."
            raise ValueError(message)
        yield row


def matches(name: str) -> list[Path]:
    """Return the files that a name or a pattern stands for."""
    paths = [Path(found) for found in sorted(glob(name, recursive=True))]  # noqa: PTH207 -- a pattern may be absolute
    if has_magic(name) and paths:
        return paths
    if not Path(name).is_file():
        message = f"{name}: there is no such file."
        raise FileNotFoundError(message)
    return [Path(name)]


def _suffix_of_all(paths: Sequence[Path]) -> str:
    suffixes = {path.suffix.lower() for path in paths}
    known = (*_DELIMITERS, *_JSON_LINES)
    if len(suffixes) > 1:
        message = (
            f"files of several kinds ({', '.join(sorted(suffixes))}): pass one kind at a time."
        )
        raise ValueError(message)
    suffix = suffixes.pop()
    if suffix not in known:
        message = (
            f"{paths[0]} does not end in {', '.join(known)}. To read Parquet and others, install "
            f"DuckDB: {how_to_install('engines')}"
        )
        raise ValueError(message)
    return suffix


def _parsed(column: Sequence[Any]) -> NDArray[Any]:
    """Return text as numbers if all of it is numbers; empty text is missing."""
    if all(isinstance(value, str | int) for value in column):
        try:
            whole = np.array([int(value) for value in column])
        except ValueError:
            pass
        else:
            if whole.dtype.kind == "i":
                return whole
    booleans = {"true": 1.0, "false": 0.0, "": np.nan, None: np.nan}
    try:
        return np.array(
            [
                booleans[text] if (text := _lower(value)) in booleans else float(value)
                for value in column
            ]
        )
    except (TypeError, ValueError):
        return np.array([None if value == "" else value for value in column], dtype=object)


def _lower(value: Any) -> Any:
    return value.strip().lower() if isinstance(value, str) else value
