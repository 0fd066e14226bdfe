"""Parquet, whose columns have types, by DuckDB or into a frame of PyArrow or Polars."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from glob import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caldist.cli._source import Cell, as_names
from caldist.engines import cells
from caldist.errors import InvalidInput

_TYPED = cells.Why(
    "the column holds another kind of values, and no numbers",
    "Name another column, or convert it first.",
)


class _Parquet(ABC):
    """A file of typed columns."""

    def __init__(self, path: Path) -> None:
        self.path, self.columns, self.twice = path, list[str](), set[str]()

    def cell(self, row: int, name: str) -> Cell:
        where, value = f"{self.path}, row {row + 1}", self._value(row, name)
        if value is None:
            return Cell(where, "", None)
        if isinstance(value, str):
            return Cell(where, value, cells.why_not(value))
        is_number = isinstance(value, int | float) or hasattr(value, "__float__")
        return Cell(where, str(value), None if is_number else _TYPED)

    @abstractmethod
    def _value(self, row: int, name: str) -> object: ...


class DuckParquet(_Parquet):
    """Parquet by DuckDB."""

    def __init__(self, path: Path, connection: Any) -> None:
        super().__init__(path)
        from caldist.engines.files import reading

        self._connection = connection
        with reading([path]):
            self._relation = connection.read_parquet(escape(str(path)), hive_partitioning=False)
        self._types = dict(zip(self._relation.columns, map(str, self._relation.types), strict=True))
        self.columns = list(self._types)

    @property
    def n_rows(self) -> int:
        """How many rows there are, which the file says without being read."""
        from caldist.engines.files import reading

        with reading([self.path]):
            query = "SELECT sum(num_rows) FROM parquet_file_metadata(?)"
            [(rows,)] = self._connection.execute(query, [escape(str(self.path))]).fetchall()
        return int(rows)

    def read(
        self, numbers: Sequence[str], names: Sequence[str], limit: int | None
    ) -> tuple[list[NDArray[np.float64]], list[NDArray[np.object_]]]:
        from caldist.engines.files import reading
        from caldist.engines.text_by_duckdb import doubles, objects

        wanted = [f"{self._number(name)} AS n{at}" for at, name in enumerate(numbers)]
        wanted += [f"{self._name(name)} AS t{at}" for at, name in enumerate(names)]
        table = self._relation if limit is None else self._relation.limit(limit)
        with reading([self.path]):
            found = table.project(", ".join(wanted)).fetchnumpy()
        return (
            [doubles(found[f"n{at}"]) for at in range(len(numbers))],
            [as_names(objects(found[f"t{at}"])) for at in range(len(names))],
        )

    def _number(self, name: str) -> str:
        from caldist.engines.files import quoted

        kind, column = self._types.get(name), quoted(name)
        if kind is None:
            return "NULL::DOUBLE"
        if kind == "VARCHAR" or kind.startswith("ENUM"):
            return cells.numbers_in_sql(f"CAST({column} AS VARCHAR)")
        if kind.startswith(("DECIMAL", "FLOAT", "DOUBLE", "BOOL")) or kind.endswith(
            ("INT", "INTEGER")
        ):
            return f"CAST({column} AS DOUBLE)"
        return f"CASE WHEN {column} IS NULL THEN NULL ELSE '-inf'::DOUBLE END"

    def _name(self, name: str) -> str:
        from caldist.engines.files import quoted

        kind, column = self._types.get(name), quoted(name)
        if kind is None:
            return "NULL::VARCHAR"
        typed = kind in {"FLOAT", "DOUBLE"} or kind.endswith(("INT", "INTEGER"))
        return column if typed and "HUGE" not in kind else f"CAST({column} AS VARCHAR)"

    def _value(self, row: int, name: str) -> object:
        from caldist.engines.files import quoted

        [found] = self._relation.project(quoted(name)).limit(1, row).fetchall()
        return found[0]


class FrameParquet(_Parquet):
    """Parquet by PyArrow or Polars."""

    def __init__(self, path: Path, package: str) -> None:
        super().__init__(path)
        self._package = package
        try:
            if package == "pyarrow":
                from pyarrow import parquet

                self.columns = list(parquet.read_schema(path).names)
            else:
                import polars as pl

                self.columns = list(pl.read_parquet_schema(path))
        except Exception as error:
            raise InvalidInput(argument=str(path), reason=f"cannot be read: {error}") from error

    def _frame(self, names: Sequence[str]) -> Any:
        import narwhals as nw

        wanted = [name for name in dict.fromkeys(names) if name in self.columns]
        try:
            if self._package == "pyarrow":
                from pyarrow import parquet

                with parquet.ParquetFile(self.path) as file:
                    return nw.from_native(file.read(wanted), eager_only=True)
            import polars as pl

            return nw.from_native(pl.read_parquet(self.path, columns=wanted), eager_only=True)
        except OSError as error:
            reason = f"cannot be read: {error}"
            raise InvalidInput(argument=str(self.path), reason=reason) from error

    def read(
        self, numbers: Sequence[str], names: Sequence[str], limit: int | None
    ) -> tuple[list[NDArray[np.float64]], list[NDArray[np.object_]]]:
        frame = self._frame([*numbers, *names])
        if limit is not None:
            frame = frame.head(limit)
        return (
            [self._number(frame, name) for name in numbers],
            [
                as_names(frame[name].to_list() if name in frame.columns else [None] * len(frame))
                for name in names
            ],
        )

    def _number(self, frame: Any, name: str) -> NDArray[np.float64]:
        import narwhals as nw

        if name not in frame.columns:
            return np.full(len(frame), np.nan)
        column = frame[name]
        if column.dtype.is_numeric() or column.dtype == nw.Boolean:
            return np.asarray(column.cast(nw.Float64).to_numpy(), dtype=np.float64)
        if column.dtype in {nw.String, nw.Categorical} or isinstance(column.dtype, nw.Enum):
            return cells.numbers(column.to_list())
        missing = column.is_null().to_numpy()
        return np.where(missing, np.nan, cells.BAD)

    def _value(self, row: int, name: str) -> object:
        found: object = self._frame([name])[name][row]
        return found
