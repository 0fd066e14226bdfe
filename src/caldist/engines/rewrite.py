"""Files copied with one more column, by DuckDB: of any size, whole or not at all."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from pathlib import Path

from caldist._util.atomic_files import whole_file
from caldist._util.optional import require
from caldist.engines._columns import Columns
from caldist.engines.cells import numbers_in_sql
from caldist.engines.files import (
    Paths,
    decimal_of,
    kind_of,
    opened,
    quoted,
    reading,
    without_limits,
)
from caldist.errors import InvalidInput

FORMATS = {
    ".csv": "FORMAT csv, HEADER",
    ".tsv": "FORMAT csv, HEADER, DELIMITER '\t'",
    ".parquet": "FORMAT parquet",
    ".pq": "FORMAT parquet",
    ".jsonl": "FORMAT json",
    ".ndjson": "FORMAT json",
}


class NoProbabilityError(InvalidInput):
    """A score that is missing, or no number between 0 and 1."""


def write_with_column(
    files: Paths,
    *,
    source: str,
    column: str,
    mapping: Callable[[str], tuple[list[str], str, list[list[float | None]]]],
    out: Path,
) -> None:
    """Copy tables to one file, with a column that an expression makes of another one.

    Parameters
    ----------
    files
        See :func:`caldist.engines.open_files`. Other columns stay as they are; where another kind
        of file is written, they get the types that DuckDB sees in them.
    source, column
        The name of a column of probabilities, and of the new one.
    mapping
        The name of a column of scores to columns that are made of it, one SELECT after the other,
        to the SQL of the value where the score is a probability, and to lists, which are the
        parameters ``$1``, ``$2`` and so on.
    out
        The file to write, whose name says of which kind it is.
    """
    duckdb = require("duckdb", extra="engines")
    how = FORMATS[out.suffix.lower()]
    same = how.partition(",")[0] == f"FORMAT {kind_of(files)}"
    connection, relation = opened(files, numbers=[source], verbatim=same)
    names = list(relation.columns)
    Columns(relation).dtype("--score", source)  # raises if there is none
    if column.casefold() in {name.casefold() for name in names}:  # as DuckDB compares them
        reason = "there is such a column already"
        raise InvalidInput(argument="--column", value=column, reason=reason, remedy="Name another.")
    number = f"TRY_CAST({without_limits(quoted(source))} AS DOUBLE)"
    if same and kind_of(files) == "csv":  # all of it is text
        number = numbers_in_sql(quoted(source), decimal_of(files))
    score = f"caldist_{uuid.uuid4().hex}"
    steps, value, lists = mapping(score)
    scored = f"(SELECT *, {number} AS {score} FROM rows_read)"  # noqa: S608 -- names are quoted
    is_valid = f"coalesce({score} >= 0 AND {score} <= 1, false)"
    rows = scored
    for step in steps:
        rows = f"(SELECT *, {step} FROM {rows})"  # noqa: S608 -- names and texts are quoted
    copied = (
        f"COPY (SELECT {', '.join(map(quoted, names))}, "  # noqa: S608 -- the same
        f"CASE WHEN {is_valid} THEN {value} "
        f"ELSE CAST(error('no probability') AS DOUBLE) END AS {quoted(column)} FROM {rows})"
    )
    refused = (
        f"SELECT coalesce(CAST({quoted(source)} AS VARCHAR), 'missing') "  # noqa: S608 -- the same
        f"FROM {scored} WHERE NOT {is_valid} LIMIT 1"
    )
    with reading(files), whole_file(out) as path:
        try:
            relation.create_view("rows_read")
            copy = f"{copied} TO {_text(str(path))} ({how})"
            [(count,)] = connection.execute(copy, lists).fetchall()
        except duckdb.InvalidInputException as error:
            first = connection.execute(refused).fetchone()
            if first is None:
                raise
            raise NoProbabilityError(
                argument=f"column {source!r}",
                value=first[0],
                reason="it is no probability",
                remedy="Correct it.",
            ) from error
        if count == 0:
            named = [files] if isinstance(files, str | os.PathLike) else files
            raise InvalidInput(argument=", ".join(map(str, named)), reason="has no rows")


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
