"""Files and folders, read by DuckDB."""

from __future__ import annotations

import glob
import os
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from caldist._util.optional import require

__all__ = ["Paths", "are_paths", "open_files", "reading"]

Paths: TypeAlias = "str | os.PathLike[str] | Sequence[str | os.PathLike[str]]"

_READERS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "json",
    ".ndjson": "json",
}
_COMPRESSION = (".gz", ".zst")


def are_paths(table: object) -> bool:
    """Whether a table is a path, a pattern, or a list of these."""
    if isinstance(table, list | tuple):
        return len(table) > 0 and all(map(are_paths, table))
    return isinstance(table, str | os.PathLike)


def open_files(files: Paths, *, numbers: Sequence[str] = ()) -> Any:
    """Return files as one DuckDB relation, which reads them when it is asked to.

    Parameters
    ----------
    files : path, pattern or list of these
        Parquet, CSV (or tab-separated) or JSON lines, by the end of their names, also compressed
        (``.gz``, ``.zst``). A folder stands for all such files in it and below; folders named
        ``name=value`` become columns. Columns are matched by name.
    numbers : list of str
        Columns of CSV files that hold numbers: whole ones in the first rows do not make a column
        of integers.

    Returns
    -------
    duckdb.DuckDBPyRelation
        With a connection of its own. What does not fit in memory goes to the system's folder for
        temporary files.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If a file is damaged or of an unknown kind.
    """
    duckdb = require("duckdb", extra="engines")
    spill = Path(tempfile.gettempdir()) / f"caldist-{uuid.uuid4().hex}"
    connection = duckdb.connect(config={"temp_directory": str(spill)})
    connection.execute("SET enable_progress_bar = false")  # it goes to standard output
    paths = [files] if isinstance(files, str | os.PathLike) else list(files)
    with reading(files):
        found = [name for path in paths for name in _matches(connection, os.fspath(path))]
        kind = _kind(found)
        partitioned = all("=" in Path(name).parent.name for name in found)
        options: dict[str, Any] = {"union_by_name": True, "hive_partitioning": partitioned}
        if kind == "json":
            options["format"] = "newline_delimited"
        read = getattr(connection, f"read_{kind}")
        names = [glob.escape(name) for name in found]
        relation = read(names, **options)
        if kind == "csv" and numbers:
            # DuckDB guesses types from the first rows.
            guessed = dict(zip(relation.columns, map(str, relation.types), strict=True))
            doubles = {name: "DOUBLE" for name in numbers if "INT" in guessed.get(name, "")}
            relation = read(names, dtype=doubles, **options) if doubles else relation
    return relation


@contextmanager
def reading(files: Paths) -> Iterator[None]:
    """Turn DuckDB's errors on files into errors that name the files."""
    duckdb = require("duckdb", extra="engines")
    try:
        yield
    except duckdb.OutOfMemoryException as error:
        raise MemoryError(str(error)) from error
    except duckdb.Error as error:
        message = f"{_show(files)} cannot be read: {error}"
        raise ValueError(message) from error


def _show(files: Paths) -> str:
    names = [files] if isinstance(files, str | os.PathLike) else list(files)
    return ", ".join(repr(os.fspath(name)) for name in names[:3]) + (", …" if names[3:] else "")


def _matches(connection: Any, path: str) -> list[str]:
    """Return the names of the files that a path, a folder or a pattern stands for."""
    if Path(path).is_dir():
        below = (str(file) for file in sorted(Path(path).rglob("*")) if file.is_file())
        names = [name for name in below if _suffix(name) in _READERS]
    elif Path(path).exists():
        names = [path]
    else:
        rows = connection.execute("SELECT file FROM glob(?) ORDER BY file", [path]).fetchall()
        names = [name for (name,) in rows]
    if not names:
        kinds = ", ".join(_READERS)
        message = f"{path!r}: there is no such file, or no file in it whose name ends in {kinds}."
        raise FileNotFoundError(message)
    return names


def _suffix(name: str) -> str:
    path = Path(name.lower())
    return path.with_suffix("").suffix if path.suffix in _COMPRESSION else path.suffix


def _kind(names: list[str]) -> str:
    for name in names:
        if _suffix(name) not in _READERS:
            kinds = ", ".join(_READERS)
            message = f"{name!r} is of an unknown kind: its name must end in one of {kinds}."
            raise ValueError(message)
    kinds_found = {_READERS[_suffix(name)] for name in names}
    if len(kinds_found) > 1:
        message = (
            f"the files are of different kinds, {' and '.join(sorted(kinds_found))}: {names[:3]}."
        )
        raise ValueError(message)
    return kinds_found.pop()
