"""CSV files by DuckDB, where it sees the same in them as the standard library does."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caldist._util.optional import require
from caldist.engines import cells
from caldist.engines.files import connect, quoted
from caldist.engines.text import TextFile

_QUERY = """SELECT {columns} FROM read_csv(
    [?], delim = ?, quote = '"', escape = '"', header = true, all_varchar = true,
    comment = '', skip = 0, auto_detect = true
)"""


def read_by_duckdb(
    file: TextFile, numbers: Sequence[str], names: Sequence[str], limit: int | None
) -> tuple[list[NDArray[np.float64]], list[NDArray[np.object_]]] | None:
    """Return columns of a plain CSV file, or None where DuckDB is not to be relied on.

    Whatever it refuses is left to the one reader that says why.
    """
    duckdb = require("duckdb", extra="engines")
    wanted = [
        f"{_of(file, name, cells.numbers_in_sql(quoted(name), file.decimal))} AS n{at}"
        for at, name in enumerate(numbers)
    ]
    wanted += [f"{_of(file, name, quoted(name))} AS t{at}" for at, name in enumerate(names)]
    query = _QUERY.format(columns=", ".join(wanted))
    if limit is not None:
        query += f" LIMIT {int(limit)}"
    with connect() as connection:
        try:
            told = connection.execute(
                _QUERY.format(columns="*") + " LIMIT 0", [_escaped(file), file.delimiter]
            )
            if not _are_those_of(file, [column[0] for column in told.description]):
                return None
            found = connection.execute(query, [_escaped(file), file.delimiter]).fetchnumpy()
        except duckdb.OutOfMemoryException as error:
            raise MemoryError(str(error)) from error
        except duckdb.Error:
            return None
    texts = [objects(found[f"t{at}"]) for at in range(len(names))]
    if any('"' in text for column in texts for text in column if text is not None):
        return None  # quotes after a blank, which belong to no cell
    return (
        [doubles(found[f"n{at}"]) for at in range(len(numbers))],
        [_stripped(column) for column in texts],
    )


def _are_those_of(file: TextFile, columns: Sequence[str]) -> bool:
    """Whether columns are those of the header, but for such as have no name."""
    return len(columns) >= len(file.header) and all(
        name in {"", found} for name, found in zip(file.header, columns, strict=False)
    )


def _of(file: TextFile, name: str, expression: str) -> str:
    return expression if name in file.columns else "NULL"


def _escaped(file: TextFile) -> str:
    return glob.escape(str(file.path))


def _stripped(column: NDArray[np.object_]) -> NDArray[np.object_]:
    known: dict[Any, Any] = {}
    for text in column:
        if text not in known:
            known[text] = cells.name(text)
    found = np.empty(column.size, dtype=object)
    found[:] = [known[text] for text in column]
    return found


def doubles(column: Any) -> NDArray[np.float64]:
    """Return a column of DuckDB with NaN for what is missing."""
    return np.asarray(np.ma.filled(np.ma.asarray(column).astype(np.float64), np.nan))


def objects(column: Any) -> NDArray[np.object_]:
    """Return a column of DuckDB with None for what is missing."""
    found = np.empty(len(column), dtype=object)
    found[:] = np.ma.getdata(column).tolist()
    found[np.ma.getmaskarray(column)] = None
    return found
