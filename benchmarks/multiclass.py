"""Several classes: seconds, ratios to sorting every column, and how wide brackets are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import caldist
from benchmarks.tables import Table, number, size_name, verdict
from benchmarks.timing import Effort, best_of, side_by_side
from caldist import multiclass
from caldist.data.class_rows import ClassRows
from caldist.multiclass.coupling import couple

Rows = tuple[NDArray[np.int64], NDArray[np.float64]]

_QUICK_ROWS, _QUICK_CLASSES = 200, 10
_QUICK_PROGRAM = 30  # rows of a linear program
_GRID = 14  # steps along a side of the triangle of three classes


@dataclass(frozen=True)
class Case:
    """A call, its size, and the most it may cost: in sorts of all columns, or in seconds.

    ``ratio`` is the most by which the upper end of a bracket may exceed the lower one; ``judge``
    finds a lower end for a call that has none.
    """

    name: str
    call: Callable[[Rows], Any]
    rows: int
    classes: int
    sorts: float | None = None
    seconds: float | None = None
    ratio: float | None = None
    judge: Callable[[Rows], float] | None = None


def _bracket(rows: Rows) -> tuple[float, float]:
    try:
        value = multiclass.smooth_ce(*rows, method="landmarks")
    except caldist.errors.ToleranceError as error:
        return error.lower, error.upper
    return value, value


def _classwise(rows: Rows) -> float:
    return multiclass.classwise_distance(*rows)


def _smooth(rows: Rows) -> float:
    return multiclass.smooth_ce(*rows)


def _coupling(rows: Rows) -> float:
    return couple(ClassRows.of(*rows)).cost


def _program(rows: Rows) -> float:
    """Return the least cost of a coupling with predictions on the rows and on a grid."""
    from scipy import sparse
    from scipy.optimize import linprog
    from scipy.spatial.distance import cdist

    y_true, y_prob = rows
    n, k = y_prob.shape
    steps = range(_GRID + 1)
    grid = [(a, b, _GRID - a - b) for a in steps for b in steps if a + b <= _GRID]
    at = np.vstack((np.array(grid) / _GRID, y_prob)) if k == 3 else y_prob
    m = at.shape[0]
    group, column = np.tile(np.arange(m), n), np.arange(n * m)
    blocks = [sparse.kron(sparse.eye(n), np.ones((1, m)))]  # each row goes somewhere
    for j in range(k):  # and at each place the labels have its frequencies
        missing = ((y_true == j)[:, None] - at[:, j]).ravel()
        blocks.append(sparse.csr_matrix((missing, (group, column)), shape=(m, n * m)))
    found = linprog(
        0.5 * cdist(y_prob, at, "cityblock").ravel(),
        A_eq=sparse.vstack(blocks).tocsr(),
        b_eq=np.concatenate((np.full(n, 1 / n), np.zeros(m * k))),
        method="highs",
    )
    return float(found.fun)


def _binning(rows: Rows) -> float:
    return multiclass.kernel_ce(*rows, method="binning", rng=0)


def _interval(rows: Rows) -> caldist.inference.Interval:
    return multiclass.confidence_interval(*rows)


CASES = (
    Case("classwise_distance", _classwise, 10**5, 3, sorts=2),
    Case("classwise_distance", _classwise, 10**5, 10, sorts=2),
    Case("classwise_distance", _classwise, 10**6, 3, sorts=2),
    Case("classwise_distance", _classwise, 20_000, 1_000, sorts=6),
    Case("smooth_ce", _smooth, 2_000, 10, seconds=1),
    Case("smooth_ce, landmarks", _bracket, 10**5, 3, seconds=3, ratio=1.1),
    Case("smooth_ce, landmarks", _bracket, 10**5, 10, seconds=3, ratio=1.7),
    Case("coupling", _coupling, 10**4, 10, seconds=3),
    Case("coupling, linear program", _coupling, 400, 3, ratio=1.1, judge=_program),
    Case("kernel_ce, 100 grids", _binning, 10**5, 10, seconds=5),
    Case("confidence_interval", _interval, 10**4, 10),
)


def rows_of(n: int, k: int) -> Rows:
    """Return labels drawn from softmax probabilities, and these squared: too sharp."""
    rng = np.random.default_rng(0)
    logits = (1.5 if k <= 3 else 3.0) * rng.normal(size=(n, k))
    truth = np.exp(logits - logits.max(axis=1, keepdims=True))
    truth /= truth.sum(axis=1, keepdims=True)
    y_true = (rng.random(n)[:, None] > truth.cumsum(axis=1)).sum(axis=1).clip(0, k - 1)
    return y_true, truth**2 / (truth**2).sum(axis=1, keepdims=True)


def _sort_columns(matrix: NDArray[np.float64]) -> None:
    for column in matrix.T:
        np.argsort(column)


def multiclass_table(effort: Effort, *, quick: bool) -> Table:
    """Lay out a row for each case."""
    lines = []
    for case in CASES:
        most = _QUICK_ROWS if case.judge is None else _QUICK_PROGRAM
        n = min(case.rows, most) if quick else case.rows
        k = min(case.classes, _QUICK_CLASSES) if quick else case.classes
        rows = rows_of(n, k)
        timing = side_by_side(partial(case.call, rows), partial(_sort_columns, rows[1]), effort)
        kept, targets = True, []
        if case.sorts is not None:
            kept, targets = timing.ratio <= case.sorts, [f"{case.sorts:g} sorts"]
        if case.seconds is not None:
            kept, targets = timing.seconds <= case.seconds, [f"{case.seconds:g} s"]
        wide = ""
        if case.ratio is not None:
            lower, upper = (
                timing.result if case.judge is None else (case.judge(rows), timing.result)
            )
            wide = number(upper / lower)
            kept = kept and upper <= case.ratio * lower
            targets.append(f"upper/lower {case.ratio:g}")
        judged = bool(targets) and not quick
        lines.append(
            [
                case.name,
                size_name(n),
                str(k),
                number(timing.seconds),
                number(timing.ratio),
                wide,
                ", ".join(targets),
                verdict(kept) if judged else "",
            ]
        )
    header = ["call", "rows", "classes", "seconds", "sorts", "upper/lower", "target", "verdict"]
    note = (
        "On over-confident softmax predictions, from raw arrays. Sorts are multiples of np.argsort "
        f"of every column; the two run in turn in one process, {best_of(effort)}. The coupling is "
        "compared with a linear program over all rows and a grid."
    )
    return Table("Several classes", header, lines, note)
