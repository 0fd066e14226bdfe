"""Several classes to binary rows, inside the engine, as ``caldist.multiclass`` does on arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw

from caldist.data.class_rows import ROW_SUM_TOLERANCE, check_order
from caldist.engines._columns import Columns, indicator
from caldist.engines._query import TableRows, check_weight, missing
from caldist.errors import InvalidInput


@dataclass(frozen=True)
class ClassRows:
    """Rows with a true class and a probability for each class.

    ``frame`` has the columns ``class`` (the number of the true class), ``largest`` (probability)
    and those of the probabilities; the other fields are as in :class:`Rows`.
    """

    frame: nw.LazyFrame[Any]
    keys: tuple[str, ...]
    probabilities: tuple[nw.Expr, ...]
    weight: nw.Expr | None
    valid: nw.Expr
    invalid: dict[str, nw.Expr]

    @classmethod
    def of(
        cls,
        columns: Columns,
        y_true: object,
        y_prob: object,
        classes: Sequence[object] | None,
        sample_weight: object,
        by: object,
    ) -> ClassRows:
        """Choose columns and check their rows."""
        names = _check_columns(y_prob)
        values = _check_classes(classes, len(names))
        check_order("y_prob", names, values)
        probabilities = tuple(columns.number("y_prob", name) for name in names)
        is_number = all(isinstance(value, int | float) for value in values)
        if is_number:
            label = columns.number("y_true", y_true, hint="Pass classes=[…] for names of classes.")
        else:
            label = columns.value("y_true", y_true)
        weight = columns.weight(sample_weight)
        keys = columns.keys(by)
        unknown = float(len(values))
        frame = columns.select().with_columns(
            _first_number([label == value for value in values]).alias("class"),
            nw.max_horizontal(*probabilities).alias("largest"),
            nw.sum_horizontal(*probabilities).alias("total"),
        )
        within = nw.all_horizontal(
            *((p >= 0) & (p <= 1) for p in probabilities), ignore_nulls=False
        )
        off = (nw.col("total") - 1).abs()
        probable = within & (off <= ROW_SUM_TOLERANCE)
        known = nw.col("class") < unknown
        invalid = {
            "missing label": missing(label) if is_number else label.is_null(),
            "bad label": ~known,
            "missing prediction": nw.any_horizontal(
                *(missing(p) for p in probabilities), ignore_nulls=False
            ),
            "bad prediction": ~probable,
        }
        valid = check_weight(weight, known & probable, invalid)
        return cls(frame, keys, probabilities, weight, valid, invalid)

    def top_label(self) -> TableRows:
        """Read the largest probability, and whether the first class that has it is the true one.

        Lazy frames have no arg_max; the smallest number among the classes that reach the maximum
        does as well.
        """
        first = _first_number([value == nw.col("largest") for value in self.probabilities])
        # As a column first: Dask does not combine what was made from several columns.
        rows = self._rows(nw.col("class") == nw.col("first"), nw.col("largest"))
        return replace(rows, frame=rows.frame.with_columns(first.alias("first")))

    def one_vs_rest(self) -> list[TableRows]:
        """Read, for each class, its probability and whether it is the true one."""
        return [
            self._rows(nw.col("class") == float(number), probability)
            for number, probability in enumerate(self.probabilities)
        ]

    def _rows(self, correct: nw.Expr, prediction: nw.Expr) -> TableRows:
        label = indicator(correct)
        return TableRows(
            self.frame, self.keys, label, prediction, self.weight, self.valid, self.invalid
        )


def _first_number(conditions: list[nw.Expr]) -> nw.Expr:
    """Return the number of the first condition that holds, or how many there are if none does."""
    none = nw.lit(float(len(conditions)))
    return nw.min_horizontal(
        *(
            nw.when(condition).then(nw.lit(float(number))).otherwise(none)
            for number, condition in enumerate(conditions)
        )
    )


def _check_columns(y_prob: object) -> list[object]:
    if isinstance(y_prob, str) or not isinstance(y_prob, Sequence) or len(y_prob) < 2:
        raise InvalidInput(
            argument="y_prob",
            value=y_prob,
            reason="it must list a column for each class, at least two",
            remedy="For one column of probabilities use summarize.",
        )
    return list(y_prob)


def _check_classes(classes: Sequence[object] | None, size: int) -> list[Any]:
    values = list(range(size)) if classes is None else list(classes)
    if len(values) != size or len(set(values)) != size:
        raise InvalidInput(
            argument="classes",
            value=classes,
            reason=f"it must name {size} different classes, one for each column of y_prob",
        )
    return values
