"""The summary as one lazy query, the same for every engine.

Each row gets an integer code: 2 cell + label for a valid row, a negative one for any other. One
GROUP BY on the code counts rows and adds up integers, so that engines, partitions and merge orders
agree to the bit. With weights w it adds up w, w times the integers, and w²; how many rows there
are is counted all the same. Only if there are negative codes a second query asks for the reasons.
The steps are ordered by what engines do differently:

- rows are checked before anything is rounded or cast, since Spark casts NaN to 0, DuckDB rounds
  and PyArrow raises;
- floor comes before the cast to integers, for the same reason;
- the key of the GROUP BY is an integer, as keys of floating point are slow in PyArrow;
- sums are cast at the end, since DuckDB adds in 128 bits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw

from caldist.data.grid import PLACE_BITS
from caldist.data.joint import INVALID
from caldist.engines._columns import Columns

_UNIT = 2.0**PLACE_BITS
_NO_SQUARE = 1e-160  # below some 1e-162 a square underflows, which PostgreSQL refuses
DOUBLES = 2 ** (53 - PLACE_BITS)


@dataclass(frozen=True)
class TableRows:
    """Rows of a table: their label (0.0 or 1.0), prediction, weight, and which are valid.

    ``frame`` has the columns that the expressions speak of, and ``keys``, those to group by.
    ``invalid`` gives a condition for each reason; the first that holds is a row's reason, and the
    last one if none of the others does.
    """

    frame: nw.LazyFrame[Any]
    keys: tuple[str, ...]
    label: nw.Expr
    prediction: nw.Expr
    weight: nw.Expr | None
    valid: nw.Expr
    invalid: dict[str, nw.Expr]


def binary_rows(
    columns: Columns,
    y_true: object,
    y_prob: object,
    sample_weight: object,
    by: object,
    pos_label: object = None,
) -> TableRows:
    """Read a label of 0 or 1, or one of two others, and its predicted probability."""
    if pos_label is None:
        label = columns.number("y_true", y_true)
    else:
        label = columns.one_of_two("y_true", y_true, pos_label)
    prediction = columns.number("y_prob", y_prob)
    weight = columns.weight(sample_weight)
    keys = columns.keys(by)
    binary = (label == 0) | (label == 1)
    probable = (prediction >= 0) & (prediction <= 1)
    invalid = {
        "missing label": missing(label),
        "bad label": ~binary,
        "missing prediction": missing(prediction),
        "bad prediction": ~probable,
    }
    valid = check_weight(weight, probable & binary, invalid)
    return TableRows(columns.select(), keys, label, prediction, weight, valid, invalid)


def missing(number: nw.Expr) -> nw.Expr:
    """Whether there is no number: pandas does not tell null from NaN, so neither do we."""
    return number.is_null() | number.is_nan()


def check_weight(weight: nw.Expr | None, valid: nw.Expr, invalid: dict[str, nw.Expr]) -> nw.Expr:
    """Add a check of the weights, if there are any, to those that rows have to pass."""
    if weight is None:
        return valid
    usable = (weight >= 0) & (weight < float("inf"))
    invalid["bad weight"] = ~usable
    return valid & usable


@dataclass(frozen=True)
class Query:
    """A query for cells, and one for what is wrong with the rows that have none.

    ``cells`` has the columns ``keys``, ``code``, ``rows`` (how many) and the sums: ``place``, if
    ``second_order`` ``square`` and, with weights, ``mass`` and ``weight_square``. Where it is
    ``by_cell``, code is the cell, and the others come twice, such as ``rows0`` and ``rows1`` for
    the two labels. ``reasons`` has ``keys``, ``reason`` (its number) and ``rows``.
    """

    cells: nw.LazyFrame[Any]
    reasons: nw.LazyFrame[Any]
    rows: TableRows
    by_cell: bool
    in_doubles: bool
    second_order: bool

    @classmethod
    def of(
        cls, rows: TableRows, bits: int, *, second_order: bool, in_doubles: bool = True
    ) -> Query:
        """Put rows on a grid of 2^bits cells.

        DuckDB adds integers in 128 bits, which takes longer than all the rest. ``in_doubles`` lets
        it add them as doubles, which is exact up to 2^53: for ``DOUBLES`` rows in a cell.
        """
        # Validity is a column of its own, as DuckDB is slow where the condition of a CASE is not.
        rows = replace(rows, frame=rows.frame.with_columns(valid=rows.valid), valid=nw.col("valid"))
        frame, engine = _round_to_grid(rows, bits), rows.frame.implementation
        in_doubles = in_doubles and engine.is_duckdb() and rows.weight is None
        by_cell = engine.is_polars()
        cell, label, fraction = (nw.col(name) for name in ("cell", "label", "fraction"))
        sums = {"place": fraction * _UNIT}
        if second_order:
            sums["square"] = _square(fraction, engine) * _UNIT
        # A cast cuts off what floor does, and Polars is faster without; others round.
        sums = sums if by_cell else {name: value.floor() for name, value in sums.items()}
        if rows.weight is not None:
            mass = nw.col("mass")
            sums = {name: mass * value.floor() for name, value in sums.items()}
            sums |= {"mass": mass, "weight_square": _square(mass, engine)}
        elif not in_doubles:
            sums = {name: value.cast(nw.Int64) for name, value in sums.items()}
        code, count = cell * 2.0 + label, {"rows": nw.len()}
        key = _key_type(rows, bits)
        if by_cell:
            # The memory of Polars grows with the rows from some 1e5 keys on: one per cell is half.
            # And its own count starts again from 0 at 2^32.
            code, count = cell, {}
            sums = _both_sides({"rows": nw.lit(1, nw.Int64)} | sums, label, rows.weight is None)
        frame = frame.select(*rows.keys, code.cast(key).alias("code"), **sums)
        cells = frame.group_by(*rows.keys, "code").agg(
            **count, **{name: nw.col(name).sum() for name in sums}
        )
        whole = nw.Int64 if rows.weight is None else nw.Float64
        cells = cells.with_columns(
            nw.col(name).cast(nw.Int64 if name.startswith("rows") else whole)
            for name in (*count, *sums)
        )
        if by_cell and rows.weight is None:
            cells = cells.with_columns(
                (nw.col(name) - nw.col(f"{name[:-1]}1")).alias(name)
                for name in sums
                if name.endswith("0")
            )
        return cls(cells, _reasons(rows), rows, by_cell, in_doubles, second_order)


def _key_type(rows: TableRows, bits: int) -> type[nw.Int32 | nw.Int64]:
    """Return the type of codes: a narrow one where engines are faster with it."""
    engine = rows.frame.implementation
    narrow = (engine.is_duckdb() or engine.is_polars()) and bits < 30
    return nw.Int32 if narrow else nw.Int64


def _square(number: nw.Expr, engine: nw.Implementation) -> nw.Expr:
    """Return the square of a number that is not negative: 0 where it would underflow."""
    if not engine.is_ibis():  # databases; all others round to 0 by themselves, and faster
        return number * number
    return nw.when(number < _NO_SQUARE).then(nw.lit(0.0)).otherwise(number * number)


def _both_sides(sums: dict[str, nw.Expr], label: nw.Expr, whole: bool) -> dict[str, nw.Expr]:  # noqa: FBT001
    """Split sums by label, into ``place0`` and ``place1``, say.

    Of whole numbers ``place0`` is the sum of both for now, which spares a product for each row.
    """
    sides = {}
    for name, value in sums.items():
        sides[f"{name}0"] = value if whole else value * (1 - label)
        sides[f"{name}1"] = value * label
    return sides


def _round_to_grid(rows: TableRows, bits: int) -> nw.LazyFrame[Any]:
    """Return the columns ``label``, ``cell``, ``fraction`` and, with weights, ``mass``.

    An invalid row has cell -1, and fraction and mass 0.
    """
    values = {"scaled": (rows.prediction * 2.0**bits, -1.0), "label": (rows.label, 0.0)}
    if rows.weight is not None:
        values["mass"] = (rows.weight, 0.0)
    columns = {
        name: nw.when(rows.valid).then(value).otherwise(nw.lit(otherwise))
        for name, (value, otherwise) in values.items()
    }
    if rows.frame.implementation.is_polars():  # the cheapest there, and an integer
        columns["label"] = (rows.label == 1).fill_null(value=False).cast(nw.Int64)
    frame = rows.frame.select(*rows.keys, **columns)
    scaled = nw.col("scaled")
    is_polars = rows.frame.implementation.is_polars()
    cell = scaled.cast(_key_type(rows, bits)) if is_polars else scaled.floor()
    frame = frame.with_columns(cell=cell)
    return frame.with_columns(fraction=nw.col("scaled") - nw.col("cell"))


def _reasons(rows: TableRows) -> nw.LazyFrame[Any]:
    """Count invalid rows by reason, apart from the cells, as most tables have none.

    Polars, for one, would evaluate the conditions for all rows.
    """
    *others, last = (INVALID.index(name) for name in rows.invalid)
    reason = nw.lit(last, nw.Int64)
    for number in reversed(others):
        condition = rows.invalid[INVALID[number]]
        reason = nw.when(condition).then(nw.lit(number, nw.Int64)).otherwise(reason)
    invalid = nw.when(rows.valid).then(nw.lit(0)).otherwise(nw.lit(1)) == 1  # null is not valid
    frame = rows.frame.filter(invalid).select(*rows.keys, reason=reason, rows=nw.lit(1, nw.Int64))
    return frame.group_by(*rows.keys, "reason").agg(nw.col("rows").sum())
