"""Which files of a folder or a pattern hold rows: none that engines keep beside them."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

from caldist.errors import InvalidInput

# What a table's folder has if it keeps files of deleted rows; what it is; what reads its rows.
_TABLES = {
    "_delta_log": ("a Delta table", "polars.scan_delta or DuckDB's delta_scan"),
    "metadata/*.metadata.json": (
        "an Iceberg table",
        "polars.scan_iceberg or DuckDB's iceberg_scan",
    ),
    ".hoodie": ("a Hudi table", "spark.read.format('hudi')"),
}


def visible(found: Iterable[Path], asked: str) -> list[Path]:
    """Return the files that a folder or a pattern stands for, in order.

    Names that begin with ``_`` or ``.`` are left out, as by Spark and Hive, which keep logs and
    unfinished files there, unless it is asked for such names.
    """
    hidden = [name for name in Path(asked).parts if name.startswith(("_", "."))]

    def is_visible(name: str) -> bool:
        return not name.startswith(("_", ".")) or any(
            name == own or fnmatchcase(name, own) for own in hidden
        )

    files = sorted(file for file in found if all(map(is_visible, file.parts)))
    refuse_lakehouses(files)
    return files


def refuse_lakehouses(paths: Iterable[Path]) -> None:
    """Raise for files of a table that keeps those of deleted rows in its folder.

    Summaries have no rows: they may lie anywhere.
    """
    tables = (path.absolute() for path in paths if path.suffix.lower() != ".npz")
    folders = {folder for path in tables for folder in (path, *path.parents)}
    for folder in sorted(folders):
        for mark, (kind, readers) in _TABLES.items():
            if any(folder.glob(mark)):
                raise InvalidInput(
                    argument=str(folder),
                    reason=f"is {kind}, whose folder also has the files of rows that were deleted "
                    "or replaced",
                    remedy=f"Read its rows by {readers} and pass that table, or write it to a "
                    "Parquet file first.",
                )
