"""Files and folders, read by DuckDB."""

from __future__ import annotations

import glob
import os
import re
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from caldist._util.optional import require
from caldist.data.validate import check_flag
from caldist.engines.cells import numbers_in_sql, why_not
from caldist.engines.folders import visible
from caldist.engines.text import KINDS, TextFile, cell_of
from caldist.errors import InvalidInput

Paths: TypeAlias = "str | os.PathLike[str] | Sequence[str | os.PathLike[str]]"

_READERS = {".parquet": "parquet", ".pq": "parquet", **KINDS}
_COMPRESSION = (".gz", ".zst")
_LONGER = "\n\n"  # after it DuckDB says more than a line can take
_REMOTE = re.compile(r"(?!file:)[a-z][a-z0-9+.-]+://", re.IGNORECASE)  # C:// is a drive


def are_paths(table: object) -> bool:
    """Whether a table is a path, a pattern, or a list of these."""
    if isinstance(table, list | tuple):
        return len(table) > 0 and all(map(are_paths, table))
    return isinstance(table, str | os.PathLike)


def open_files(
    files: Paths,
    *,
    numbers: Sequence[str] = (),
    names: Sequence[str] = (),
    remote: bool = False,
    verbatim: bool = False,
) -> Any:
    """Return files as one DuckDB relation, which reads them when it is asked to.

    Parameters
    ----------
    files : path, pattern or list of these
        Parquet, CSV (or tab-separated) or JSON lines, by the end of their names, also compressed
        (``.gz``, ``.zst``). A folder stands for all such files in it and below, but for names that
        begin with ``_`` or ``.``; folders named ``name=value`` become columns, which the files must
        not have themselves. Columns are matched by name. Folders of Delta, Iceberg and Hudi tables
        are refused, as they also have the files of deleted rows; files elsewhere are not checked
        for that.
    numbers : list of str
        Columns of CSV files that hold numbers, as doubles: a cell means the same to every reader
        of caldist, as ``yes`` means 1 and ``NA`` nothing. What is no number becomes -inf.
    names : list of str
        Columns of CSV files and of JSON lines that stay text, whatever it looks like.
    remote : bool
        Whether files may be elsewhere, as in ``"https://…"`` or ``"s3://…"``. DuckDB then opens
        connections, and installs and loads the extensions that it needs for them. Otherwise
        nothing is read but local files.
    verbatim : bool
        Whether to keep the values of CSV files as text and those of JSON lines as JSON, so that
        what is written again is what was read: 007 stays 007.

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
        If a file is damaged, of an unknown kind, or not a local one; if a folder gives a column
        that a file has itself.
    """
    _, relation = opened(files, numbers=numbers, names=names, remote=remote, verbatim=verbatim)
    return relation


def opened(
    files: Paths,
    *,
    numbers: Sequence[str] = (),
    names: Sequence[str] = (),
    remote: bool = False,
    verbatim: bool = False,
) -> tuple[Any, Any]:
    """Return the connection too, which takes statements with parameters."""
    if not check_flag("remote", remote):
        _refuse_remote(_paths(files))
    connection = connect(remote=remote)
    with reading(files):
        found = _found(connection, files)
        kind = _kind(found)
        options: dict[str, Any] = {"union_by_name": True, "hive_partitioning": False}
        if kind == "json":
            options["format"] = "newline_delimited"
        if check_flag("verbatim", verbatim) and kind != "parquet":
            options |= {"all_varchar": True} if kind == "csv" else {"maximum_depth": 1}
        decimal = "."
        if kind == "csv" and not remote:
            options |= {"sep": _delimiter(found), "quotechar": '"', "header": True}
            decimal = "." if options["sep"] == "," else ","
        read = getattr(connection, f"read_{kind}")
        paths_found = [glob.escape(name) for name in found]
        relation = read(paths_found, **options)
        if kind == "json" and relation.columns == ["json"] and not relation.limit(1).fetchall():
            raise InvalidInput(argument=_show(files), reason="has no rows")
        if kind == "json" and names:  # DuckDB guesses dates, 02-01-2026 for one
            types = zip(relation.columns, map(str, relation.types), strict=True)
            kinds = {name: "VARCHAR" if name in names else found for name, found in types}
            options["columns"] = kinds
            relation = read(paths_found, **options)
        own = relation.columns  # without those of folders
        if all("=" in Path(name).parent.name for name in found):
            refuse_columns_twice(relation.columns, found)
            options["hive_partitioning"] = True
            relation = read(paths_found, **options)
        if kind == "csv" and not verbatim:
            texts = {name: "VARCHAR" for name in (*numbers, *names) if name in own}
            relation = read(paths_found, dtype=texts, **options) if texts else relation
            # DuckDB guesses types from the first rows, and has words of its own for labels.
            replaced = [
                f"{numbers_in_sql(quoted(name), decimal)} AS {quoted(name)}"
                for name in texts
                if name in numbers
            ]
            if replaced:
                relation = relation.project(f"* REPLACE ({', '.join(replaced)})")
    return connection, relation


def connect(*, remote: bool = False) -> Any:
    """Return a connection of its own to DuckDB, which stays here unless it is told otherwise."""
    duckdb = require("duckdb", extra="engines")
    spill = Path(tempfile.gettempdir()) / f"caldist-{uuid.uuid4().hex}"
    config: dict[str, Any] = {"temp_directory": str(spill)}
    if not remote:
        config |= {"autoinstall_known_extensions": False, "autoload_known_extensions": False}
    connection = duckdb.connect(config=config)
    connection.execute("SET enable_progress_bar = false")  # it goes to standard output
    return connection


def quoted(name: str) -> str:
    """Return the name of a column as SQL has it."""
    return '"' + name.replace('"', '""') + '"'


def without_limits(column: str) -> str:
    """Return an expression that is a column, and of which DuckDB knows no minimum and maximum.

    It folds comparisons and ``isnan`` by those that Parquet files keep, which leave NaN out.
    """
    return f"CASE WHEN {column} IS NOT NULL THEN {column} END"


def refuse_what_is_no_number(files: Paths, numbers: Sequence[str]) -> None:
    """Raise for the first cell of CSV files that is no number, with its place, if there is one."""
    found = _found(connect(), files)
    for name in found if _kind(found) == "csv" else ():
        file = TextFile(Path(name), "csv")
        places = [(column, file.position(column)) for column in numbers]
        for at, (line, row) in enumerate(file.rows()):
            for column, position in places:
                text = str(cell_of(row, position) or "")
                if (why := why_not(text, file.decimal)) is not None:
                    argument = f"column {column!r}"
                    raise InvalidInput(
                        argument=argument,
                        index=at,
                        value=text,
                        place=f"{name}, line {line}: {argument}",
                        **why._asdict(),
                    )


def decimal_of(files: Paths) -> str:
    """Return the decimal mark of CSV files: a comma where commas do not separate cells."""
    found = _found(connect(), files)
    return "." if _delimiter(found) == "," else ","


def _delimiter(names: Sequence[str]) -> str:
    """Return what separates the cells of CSV files, which must be the same in all."""
    files = [TextFile(Path(name), "csv") for name in names]
    for file in files:
        if not file.is_utf8:
            raise InvalidInput(
                argument=str(file.path),
                reason="is not UTF-8",
                remedy="Convert it first, for example with iconv -f WINDOWS-1252 -t UTF-8.",
            )
        if file.delimiter != files[0].delimiter:
            raise InvalidInput(
                argument=str(file.path),
                reason=f"has {file.delimiter!r} between cells and {files[0].path} has "
                f"{files[0].delimiter!r}",
                remedy="Read one kind at a time.",
            )
    return files[0].delimiter


@contextmanager
def reading(files: Paths) -> Iterator[None]:
    """Turn DuckDB's errors on files into errors that name the files."""
    duckdb = require("duckdb", extra="engines")
    try:
        yield
    except duckdb.OutOfMemoryException as error:
        raise MemoryError(str(error)) from error
    except duckdb.Error as error:
        reason = f"cannot be read: {str(error).partition(_LONGER)[0].rstrip('.')}"
        damaged = _damaged(files, str(error)) or _show(files)
        raise InvalidInput(argument=damaged, reason=reason) from error


def _damaged(files: Paths, said: str) -> str | None:
    """Return the first of several Parquet files that cannot be read, if the error names none."""
    duckdb = require("duckdb", extra="engines")
    connection = connect()
    try:
        found = _found(connection, files)
    except (OSError, duckdb.Error):
        return None
    if _kind(found) != "parquet" or any(Path(name).name in said for name in found):
        return None
    for name in found:
        try:
            rows = connection.read_parquet([glob.escape(name)])
            rows.query("rows_read", "SELECT bit_xor(hash(COLUMNS(*))) FROM rows_read").fetchall()
        except duckdb.Error:
            return repr(name)
    return None


def _show(files: Paths) -> str:
    names = _paths(files)
    return ", ".join(repr(os.fspath(name)) for name in names[:3]) + (", …" if names[3:] else "")


def _refuse_remote(paths: Sequence[str | os.PathLike[str]]) -> None:
    for path in paths:
        if _REMOTE.match(os.fspath(path)):
            raise InvalidInput(
                argument=repr(os.fspath(path)),
                reason="is not a local file, and caldist opens no connection unless it is asked to",
                remedy="Download it, or pass caldist.engines.open_files(…, remote=True).",
            )


def refuse_columns_twice(columns: Sequence[str], names: Sequence[str]) -> None:
    """Refuse folders that give a column of the files: DuckDB would let the folder win."""
    own = {column.casefold(): column for column in columns}  # as DuckDB compares names
    for name in names:
        for folder in Path(name).parent.parts:
            key, is_key, _ = folder.partition("=")
            if is_key and key.casefold() in own:
                raise InvalidInput(
                    argument=f"the folder {folder!r} of {name!r}",
                    reason=f"gives a column {key!r}, and the files have a column "
                    f"{own[key.casefold()]!r} themselves",
                    remedy="Rename one of them.",
                )


def _paths(files: Paths) -> list[str | os.PathLike[str]]:
    return [files] if isinstance(files, str | os.PathLike) else list(files)


def _found(connection: Any, files: Paths) -> list[str]:
    """Return the names of all files that are meant."""
    paths = (os.fspath(path).removeprefix("file://") for path in _paths(files))
    return [name for path in paths for name in _matches(connection, path)]


def _matches(connection: Any, path: str) -> list[str]:
    """Return the names of the files that a path, a folder or a pattern stands for."""
    if Path(path).is_dir():
        below = [file for file in Path(path).rglob("*") if _suffix(file.name) in _READERS]
        names = [str(file) for file in visible(below, path) if file.is_file()]
    elif Path(path).exists():
        names = [path]
    else:
        rows = connection.execute("SELECT file FROM glob(?) ORDER BY file", [path]).fetchall()
        shown = set(visible((Path(name) for (name,) in rows), path))
        names = [name for (name,) in rows if Path(name) in shown]
    if not names:
        kinds = ", ".join(_READERS)
        message = (
            f"{path!r}: there is no such file, or no file in it whose name ends in {kinds} and "
            "does not start with _ or a dot."
        )
        raise FileNotFoundError(message)
    return names


def kind_of(files: Paths) -> str:
    """Return "parquet", "csv" or "json", by the name of the first file; empty for folders."""
    return _READERS.get(_suffix(os.fspath(next(iter(_paths(files)), ""))), "")


def _suffix(name: str) -> str:
    path = Path(name.lower())
    return path.with_suffix("").suffix if path.suffix in _COMPRESSION else path.suffix


def _kind(names: list[str]) -> str:
    for name in names:
        if _suffix(name) == ".npz":
            raise InvalidInput(
                argument=repr(name),
                reason="is a summary by its name, and has no rows",
                remedy="Pass the table that it was made of, or read it with caldist.Joint.load.",
            )
        if _suffix(name) not in _READERS:
            kinds = ", ".join(_READERS)
            reason = f"is of an unknown kind: its name does not end in one of {kinds}"
            raise InvalidInput(argument=repr(name), reason=reason)
    kinds_found = {_READERS[_suffix(name)] for name in names}
    if len(kinds_found) > 1:
        raise InvalidInput(
            argument=", ".join(map(repr, names[:3])),
            reason=f"are of different kinds, {' and '.join(sorted(kinds_found))}",
            remedy="Read one kind at a time.",
        )
    return kinds_found.pop()
