"""Columns of a table: found by name, checked by type, renamed."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

import narwhals as nw

from caldist._util.invalid import show
from caldist.engines.files import quoted
from caldist.errors import InvalidInput, InvalidType


class Columns:
    """The columns that a summary reads.

    They are chosen one by one, by their positions, and get names of their own, since the names in
    the table may be anything, and engines take some for patterns; :meth:`select` returns them all.
    """

    def __init__(self, table: Any) -> None:
        try:
            frame: nw.LazyFrame[Any] = nw.from_native(table).lazy()
        except TypeError as error:
            raise InvalidType(
                argument="table",
                reason=f"is of type {type(table).__name__}",
                remedy="Pass a data frame (pandas, polars, pyarrow, duckdb, dask, pyspark, ibis) "
                "or the path of a file. Arrays go to Joint.from_arrays.",
            ) from error
        self._schema = frame.collect_schema()
        self._frame = _numbered(frame)
        self._chosen: dict[str, nw.Expr] = {}

    def dtype(self, argument: str, name: object) -> Any:
        """Return the type of a column, which must be there."""
        if not isinstance(name, str):
            reason = "it must be the name of a column"
            raise InvalidType(argument=argument, value=name, reason=reason)
        if name in self._schema:
            return self._schema[name]
        names = list(self._schema)
        close = get_close_matches(name, names, n=1)
        listed = ", ".join(map(repr, names[:20])) + (", …" if len(names) > 20 else "")
        raise InvalidInput(
            argument=argument,
            value=name,
            reason=f"there is no such column; there are {listed}",
            remedy=f"Did you mean {close[0]!r}?" if close else "",
        )

    def number(self, argument: str, name: object, *, hint: str = "") -> nw.Expr:
        """Choose a column of numbers or Booleans, as float64: exact for all that matters here."""
        dtype = self.dtype(argument, name)
        if not (dtype.is_numeric() or dtype == nw.Boolean):
            raise InvalidType(
                argument=argument,
                value=name,
                reason=f"the column holds {dtype}, not numbers or Booleans",
                remedy=f"Nothing is guessed: convert the column first. {hint}".rstrip(),
            )
        column = self._column(name)
        return self._choose(indicator(column) if dtype == nw.Boolean else column.cast(nw.Float64))

    def weight(self, name: object) -> nw.Expr | None:
        """Choose the column of weights, if there is one."""
        return None if name is None else self.number("sample_weight", name)

    def value(self, argument: str, name: object) -> nw.Expr:
        """Choose a column of any type; categories become text."""
        dtype = self.dtype(argument, name)
        column = self._column(name)
        return self._choose(column.cast(nw.String) if _is_category(dtype) else column)

    def one_of_two(self, argument: str, name: object, pos_label: object) -> nw.Expr:
        """Choose a column of two labels, as 1.0 where it is ``pos_label`` and else 0.0."""
        dtype = self.dtype(argument, name)
        column = self._column(name)
        found = self._frame.select(label=column).unique().head(5)  # null, NaN and three labels
        is_polars = found.implementation.is_polars()
        table = found.collect(engine="streaming") if is_polars else found.collect()
        values = sorted(
            {value for value in table["label"].drop_nulls().to_list() if value == value},  # noqa: PLR0124 -- NaN
            key=str,
        )
        shown = ", ".join(map(show, values))
        if pos_label not in values and (len(values) > 1 or not _alike(pos_label, values)):
            raise InvalidInput(
                argument="pos_label",
                value=pos_label,
                reason=f"it is none of the labels in column {name!r}, {shown}",
            )
        if len(values) > 2:
            raise InvalidInput(
                argument=argument,
                value=name,
                reason=f"the column has more than two labels, among them {shown}, and with "
                "pos_label there are two",
                remedy="For several classes use summarize_one_vs_rest.",
            )
        there = ~(column.is_null() | column.is_nan()) if dtype.is_float() else ~column.is_null()
        ones = column == pos_label
        if dtype == nw.Boolean:
            ones = column if pos_label else ~column
        elif _is_category(dtype):
            ones = column.cast(nw.String) == pos_label
        is_one = nw.when(ones).then(nw.lit(1.0)).otherwise(nw.lit(0.0))
        return self._choose(nw.when(there).then(is_one))

    def keys(self, by: object) -> tuple[str, ...]:
        """Choose columns to group by, and return their new names."""
        if by is None:
            return ()
        names = [by] if isinstance(by, str) else by
        if not isinstance(names, Sequence) or len(names) == 0:
            reason = "it must be a column name or a list of names"
            raise InvalidType(argument="by", value=by, reason=reason)
        keys: list[str] = []
        for name in names:
            dtype = self.dtype("by", name)
            column = self._column(name)
            if dtype.is_float():  # NaN could not be looked up in a mapping: it is one with null
                column = column.fill_nan(None)
            elif self._is_arrow_category(name):
                column = column.cast(nw.String)
            keys.append(f"key{len(keys)}")
            self._chosen[keys[-1]] = column
        return tuple(keys)

    def _is_arrow_category(self, name: str) -> bool:
        """Whether a column of pandas or dask has categories of Arrow, which neither can sort."""
        kind = self._frame.implementation
        if not (kind.is_pandas_like() or kind.is_dask()):
            return False
        return str(self._frame.to_native()[name].dtype).startswith("dictionary")

    def _column(self, name: Any) -> nw.Expr:
        """Return a column that is there, by its position; see ``without_limits`` for the CASE."""
        column = nw.nth(list(self._schema).index(name))
        engine = self._frame.implementation
        if self._schema[name].is_float() and (engine.is_duckdb() or engine.is_ibis()):
            return nw.when(~column.is_null()).then(column)
        return column

    def _choose(self, column: nw.Expr) -> nw.Expr:
        name = f"column{len(self._chosen)}"
        self._chosen[name] = column
        return nw.col(name)

    def select(self) -> nw.LazyFrame[Any]:
        """Return the columns that were chosen."""
        return self._frame.select(**self._chosen)


def _numbered(frame: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """Rename the columns of engines that take some names for patterns or fields.

    To DuckDB and Spark ``*`` means all columns, to Spark ``a.b`` is a field of a column, and early
    versions of Polars take ``^…$`` for a regular expression.
    """
    native, engine = frame.to_native(), frame.implementation
    if engine.is_duckdb():
        columns = (f"{quoted(name)} AS column{at}" for at, name in enumerate(native.columns))
        native = native.project(", ".join(columns))
    elif engine.is_polars():
        columns = native.collect_schema().names()
        native = native.rename({name: f"column{at}" for at, name in enumerate(columns)})
    elif engine.is_spark_like():
        native = native.toDF(*(f"column{at}" for at in range(len(native.columns))))
    numbered: nw.LazyFrame[Any] = nw.from_native(native).lazy()
    return numbered


def indicator(condition: nw.Expr) -> nw.Expr:
    """Return 1.0 where a condition holds, else 0.0: PostgreSQL casts Booleans to integers alone."""
    return condition.cast(nw.Int32).cast(nw.Float64)


def _alike(pos_label: object, values: Sequence[object]) -> bool:
    """Whether a label that does not occur could: all labels are the other one."""
    return not values or isinstance(pos_label, str) == isinstance(values[0], str)


def _is_category(dtype: Any) -> bool:
    return isinstance(dtype, nw.Categorical | nw.Enum)
