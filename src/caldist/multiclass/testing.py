"""An exact test of calibration of several classes."""

from __future__ import annotations

import math
from typing import Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike

from caldist._util.types import Integers, Vector
from caldist.data import validate
from caldist.data.class_rows import Classes, ClassRows, sums_by
from caldist.errors import answering
from caldist.inference.null_distribution import ranks
from caldist.inference.resampling import Resampler
from caldist.inference.testing import TestResult
from caldist.kernels.loader import simplex, smooth
from caldist.multiclass.kernel import random_cells

Measured = Literal["auto", "classwise_smooth_ce", "kernel_ce", "brier_score", "top_label"]

_FAMILY = 41  # the random streams of the draws
_GRIDS = 42  # and that of the kernel's random grids
_MOST_GRIDS = 50
_WORK = 4_000_000  # cells times classes that a replicate goes over for the kernel
_BANDWIDTH = 0.2


class Statistic(Protocol):
    """A statistic of labels, the predictions being fixed."""

    def __call__(self, label: Integers) -> float:
        """Return its value for the labels."""


@answering
def calibration_test(
    y_true: ArrayLike,
    y_prob: ArrayLike | None = None,
    *,
    measure: Measured = "auto",
    n_resamples: int = 999,
    classes: Classes | None = None,
    normalize: bool = False,
    sample_weight: ArrayLike | None = None,
    rng: validate.Rng = 0,
    progress: bool = False,
) -> TestResult:
    r"""Test whether predictions of several classes are perfectly calibrated.

    The predictions stay, a class y* is drawn for each row with the predicted probabilities, B
    times, and

    .. math:: p = \frac{1 + \#\{T^* \ge T\}}{B + 1}

    for the statistic T of the data.

    **What it means.** If the predictions are perfectly calibrated, p ≤ α happens with probability
    at most α: in every sample size, for every statistic, with ties and with weights that do not
    depend on the labels. A large sample makes p small for a deviation that does not matter: then
    look at :func:`caldist.multiclass.confidence_interval`. A large p-value does not prove
    calibration.

    **Which statistic.** "auto" takes the least p-value of four and calibrates it by the same draws,
    so the combination is exact too: ``classwise_smooth_ce``, :math:`\tfrac12 \sum_j` smCE of each
    class against the rest, sees single classes; ``kernel_ce`` at bandwidth 0.2, by random grids,
    sees what cancels in every class; ``brier_score``, the standardised

    .. math:: \sum_i \bigl(\|y_i - v_i\|^2 - (1 - \|v_i\|^2)\bigr),

    two-sided, sees predictions that are too extreme or not extreme enough; ``top_label``, smCE of
    the most probable class, sees confidences.

    **What it estimates.** The p-value speaks of the population that the labels come from;
    ``statistic`` is the sample's.

    **Cost.** k sorts, then O(n k) for each replicate, without sorting, on all cores; memory O(n k).

    Parameters
    ----------
    y_true : array-like of classes
        Numbers 0, 1, …, or names listed in ``classes``.
    y_prob : matrix
        A row per example and a column per class, rows summing to 1.
    measure : "auto", "classwise_smooth_ce", "kernel_ce", "brier_score" or "top_label"
    n_resamples : int
        B above.
    classes : sequence, optional
        The labels in the order of the columns, where they are not 0, 1, … or the names of a
        frame's columns.
    normalize : bool
        Divide each row by its sum, where rounding keeps rows from summing to 1.
    sample_weight : array-like, optional
        Weights must not depend on the labels.
    rng : int, numpy.random.Generator or None
        The same rows give the same answer, on any number of cores; None draws a fresh seed.
    progress : bool
        Show a progress bar after two seconds.

    Returns
    -------
    caldist.inference.TestResult

    Examples
    --------
    >>> import numpy as np, caldist
    >>> demo = caldist.datasets.load_demo()
    >>> neighbours, forest = (
    ...     np.column_stack([1 - p, p])  # a column for each class
    ...     for p in (demo.y_prob["nearest_neighbours"], demo.y_prob["random_forest"])
    ... )
    >>> test = caldist.multiclass.calibration_test
    >>> test(demo.y_true, neighbours, n_resamples=199).pvalue > 0.1
    True
    >>> result = test(demo.y_true, forest, n_resamples=199)
    >>> result.pvalue < 0.01, [part.measure for part in result.components]
    (True, ['classwise_smooth_ce', 'kernel_ce', 'brier_score', 'top_label'])
    """
    validate.check_choice("measure", measure, ("auto", *_STATISTICS))
    resampler = Resampler.of(rng, n_resamples=n_resamples, progress=progress)
    rows = ClassRows.of(
        y_true, y_prob, classes=classes, normalize=normalize, sample_weight=sample_weight
    )
    names = list(_STATISTICS) if measure == "auto" else [measure]
    statistics = [_STATISTICS[name](rows, resampler) for name in names]
    dense = rows.dense

    def replicate(rng: np.random.Generator) -> list[float]:
        label = np.empty(rows.n_rows, dtype=np.int64)
        simplex.draw(dense, rng.random(rows.n_rows), label)
        return [statistic(label) for statistic in statistics]

    observed = np.array([[statistic(rows.label) for statistic in statistics]])
    drawn = resampler.run(replicate, family=_FAMILY, size=rows.n_rows)
    values = np.vstack((observed, drawn))
    rank = np.column_stack([ranks(column) for column in values.T])
    draws = resampler.n_resamples + 1
    parts = tuple(
        TestResult(
            statistic=float(values[0, at]),
            pvalue=int(rank[0, at]) / draws,
            measure=name,
            n_resamples=resampler.n_resamples,
        )
        for at, name in enumerate(names)
    )
    if len(parts) == 1:
        return parts[0]
    best = rank.min(axis=1)
    return TestResult(
        statistic=int(best[0]) / draws,
        pvalue=int(np.count_nonzero(best <= best[0])) / draws,
        measure="auto",
        n_resamples=resampler.n_resamples,
        components=parts,
    )


class ClasswiseSmooth:
    """½ Σ_j smCE of each class, from columns that were sorted once; with two classes, of one."""

    def __init__(self, rows: ClassRows, _: Resampler | None = None) -> None:
        self.share = rows.share
        self.columns: list[tuple[int, Integers, Vector, Vector]] = []
        for j, prediction in enumerate(rows.columns()):
            if rows.n_classes == 2 and j == 0:
                continue
            order = np.argsort(prediction, kind="stable")
            v = prediction[order]
            first = np.concatenate(([True], v[1:] != v[:-1]))
            place = np.empty(order.size, dtype=np.int64)
            place[order] = np.cumsum(first) - 1
            support = np.ascontiguousarray(v[first])
            expected = sums_by(place, self.share * prediction, support.size)
            self.columns.append((j, place, support, expected))
        self.factor = 1.0 if rows.n_classes == 2 else 0.5

    def __call__(self, label: Integers) -> float:
        """Return the value for other labels."""
        total = 0.0
        for j, place, support, expected in self.columns:
            true = np.flatnonzero(label == j)
            seen = np.bincount(place[true], self.share[true], support.size)
            total += smooth.smooth_ce(support, seen - expected, np.empty(0))
        return self.factor * total


class _Kernel:
    """kCE_k² by random grids that stay the same."""

    def __init__(self, rows: ClassRows, resampler: Resampler) -> None:
        rng = resampler.stream(_GRIDS)
        self.k, self.share = rows.n_classes, rows.share
        self.grids: list[tuple[Integers, Vector]] = []
        grids = max(3, min(_MOST_GRIDS, _WORK // (rows.n_rows * rows.n_classes)))
        for _ in range(grids):
            cell, count = random_cells(rows, _BANDWIDTH, rng)
            expected = np.array(
                [np.bincount(cell, rows.share * v, count) for v in rows.columns()]
            ).T
            self.grids.append((cell * self.k, np.ascontiguousarray(expected).ravel()))

    def __call__(self, label: Integers) -> float:
        total = 0.0
        for cell, expected in self.grids:
            sums = np.bincount(cell + label, self.share, expected.size) - expected
            total += 0.5 * float(sums @ sums)
        return math.sqrt(total / len(self.grids))


class _Brier:
    """The standardised Brier score, its absolute value: with two classes Spiegelhalter's z."""

    def __init__(self, rows: ClassRows, _: Resampler) -> None:
        dense = rows.dense
        square = np.einsum("ij,ij->i", dense, dense)
        cube = np.einsum("ij,ij,ij->i", dense, dense, dense)
        variance = 4 * float(rows.share**2 @ np.maximum(cube - square**2, 0.0))
        self.rows, self.square = rows, square
        self.scale = 1 / math.sqrt(variance) if variance > 0 else 0.0

    def __call__(self, label: Integers) -> float:
        own = self.rows.dense[np.arange(label.size), label]
        # ‖y - v‖² - (1 - ‖v‖²) = 2 (‖v‖² - v_y)
        return abs(2 * float(self.rows.share @ (self.square - own))) * self.scale


class _TopLabel:
    """smCE of the most probable class."""

    def __init__(self, rows: ClassRows, _: Resampler) -> None:
        best = rows.dense.argmax(axis=1)
        confidence = rows.dense[np.arange(best.size), best]
        self.best, self.share = best, rows.share
        self.support, place = np.unique(confidence, return_inverse=True)
        self.place = place.reshape(-1)
        self.expected = np.bincount(self.place, rows.share * confidence, self.support.size)

    def __call__(self, label: Integers) -> float:
        right = self.share * (label == self.best)
        seen = np.bincount(self.place, right, self.support.size)
        return float(smooth.smooth_ce(self.support, seen - self.expected, np.empty(0)))


_STATISTICS = {
    "classwise_smooth_ce": ClasswiseSmooth,
    "kernel_ce": _Kernel,
    "brier_score": _Brier,
    "top_label": _TopLabel,
}
