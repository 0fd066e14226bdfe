r"""Which of two models of several classes is better calibrated.

The measure is CWs = ½ Σ_j smCE_j over the classes against the rest. Like smCE it is a norm of the
residual masses, and its witness is half that of each class; so what
:mod:`caldist.inference.differences` says of norms holds for it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from caldist._util.invalid import show
from caldist._util.numbers import least_of
from caldist._util.types import Integers, Vector
from caldist.data import validate
from caldist.data.class_rows import Classes, ClassRows, fail_if_swapped, sums_by
from caldist.errors import InvalidInput, InvalidType, answering, refuse_one_of_a_pair
from caldist.inference.comparison import Comparison, paired_comparisons
from caldist.inference.differences import PARTS, Mean
from caldist.inference.resampling import Resampler, order_rank, order_statistic
from caldist.inference.sample import FLIPS
from caldist.measures.smooth_ce import SmoothNorm
from caldist.measures.smooth_ce import smooth_ce as binary_smooth_ce
from caldist.multiclass.intervals import warn_if_few

_NAME = "classwise_smooth_ce"


@answering
def compare(
    y_true: ArrayLike,
    y_prob_a: ArrayLike | None = None,
    y_prob_b: ArrayLike | None = None,
    *,
    confidence_level: float = 0.95,
    n_resamples: int = 999,
    classes: Classes | None = None,
    normalize: bool = False,
    sample_weight: ArrayLike | None = None,
    rng: validate.Rng = 0,
    progress: bool = False,
) -> Comparison:
    r"""Compare the calibration of two models of several classes on the same rows.

    .. math:: T = \tfrac12 \sum_j \mathrm{smCE}(v_j, 1[y = j])

    is compared, the smooth twin of the classwise distance, by the recipe of
    :func:`caldist.compare` with the same random signs for all classes of both models.

    **What it means.** With the given confidence the population's difference lies between ``lower``
    and ``upper``; it is negative where the first model is better. It also holds where one model or
    both are calibrated. With two classes it is :func:`caldist.compare` with ``smooth_ce``.

    **What it estimates.** The population's difference.

    **Cost.** 2k sorts, and then O(n k) for each resample.

    Parameters
    ----------
    y_true : array-like of classes
        Numbers 0, 1, …, or names listed in ``classes``.
    y_prob_a, y_prob_b : matrix
        The predictions of the two models for the same rows: a column per class, rows summing to 1.
    confidence_level : float
    n_resamples : int
        How often signs are drawn.
    classes : sequence, optional
        The labels in the order of the columns, where they are not 0, 1, … or the names of a
        frame's columns.
    normalize : bool
        Divide each row by its sum, where rounding keeps rows from summing to 1.
    sample_weight : array-like, optional
    rng : int, numpy.random.Generator or None
        The same rows give the same answer, on any number of cores; None draws a fresh seed.
    progress : bool
        Show a progress bar after two seconds.

    Returns
    -------
    caldist.inference.Comparison

    Examples
    --------
    >>> import numpy as np, caldist
    >>> demo = caldist.datasets.load_demo()
    >>> logistic, forest = (
    ...     np.column_stack([1 - p, p])  # a column for each class
    ...     for p in (demo.y_prob["logistic_regression"], demo.y_prob["random_forest"])
    ... )
    >>> result = caldist.multiclass.compare(demo.y_true, logistic, forest)
    >>> result.upper < 0, result.pvalue <= 0.05
    (True, True)
    """
    confidence_level = validate.check_fraction("confidence_level", confidence_level)
    resampler = Resampler.of(rng, n_resamples=n_resamples, progress=progress)
    refuse_one_of_a_pair(y_prob_a, y_prob_b, "caldist.report(y_true, models)", matrices=True)
    models = []
    both = {"y_prob_a": y_prob_a, "y_prob_b": y_prob_b}
    for name, matrix in both.items():
        fail_if_swapped(y_true, matrix, ("y_true", name), "(y_true, y_prob_a, y_prob_b)")
    for name, matrix in both.items():
        try:
            models.append(
                ClassRows.of(
                    y_true,
                    matrix,
                    classes=classes,
                    normalize=normalize,
                    sample_weight=sample_weight,
                )
            )
        except (InvalidInput, InvalidType) as error:
            if error.argument != "y_prob":
                raise
            raise error.but(argument=name) from None
    first, second = models
    if first.n_classes != second.n_classes:
        raise InvalidInput(
            argument="y_prob_b",
            reason=f"has {second.n_classes} columns, but y_prob_a has {first.n_classes}",
            remedy="Both must have the same classes.",
        )
    if first.names != second.names:
        raise InvalidInput(
            argument="y_prob_b",
            reason=f"has the classes {show(second.names)}, but y_prob_a has {show(first.names)}",
            remedy="Bring the columns of both to the same order.",
        )
    order_rank(
        resampler.n_resamples, 1 - (1 - confidence_level) / PARTS
    )  # refused before a warning
    warn_if_few(first)
    return paired(first, second, confidence_level, resampler)


def paired_models(
    models: Mapping[str, ClassRows], confidence_level: float, resampler: Resampler
) -> dict[tuple[str, str], Comparison]:
    """Compare all pairs of models on the same rows, in one statement for all of them."""
    pairs = list(combinations(models, 2))
    risk = (1 - confidence_level) / len(pairs)
    order_rank(resampler.n_resamples, 1 - risk / PARTS)  # too few are refused before they are made
    found = {}
    for a, b in pairs:
        one = paired(models[a], models[b], 1 - risk, resampler)
        found[a, b] = replace(
            one,
            pvalue=min(1.0, len(pairs) * one.pvalue),
            least_pvalue=min(1.0, len(pairs) * one.least_pvalue),
            confidence_level=confidence_level,
        )
    return found


def paired(
    first: ClassRows,
    second: ClassRows,
    confidence_level: float,
    resampler: Resampler,
) -> Comparison:
    """Compare two models on the same rows, checked already; enough resamples for the level."""
    delta = 1 - confidence_level
    if first.n_classes == 2:
        pair = {"a": first.binary, "b": second.binary}
        found = paired_comparisons(pair, binary_smooth_ce, confidence_level, resampler)
        return found["a", "b"]
    sides = _Side(first), _Side(second)

    def replicate(rng: np.random.Generator) -> list[tuple[float, float]]:
        sign = rng.choice(np.array([-1.0, 1.0]), first.n_rows)
        return [side.along(sign) for side in sides]

    draws = resampler.run(replicate, family=FLIPS, size=first.n_rows * first.n_classes)
    value_a, value_b = sides[0].value, sides[1].value
    difference = value_a - value_b
    excess_a = draws[:, 0, 0] - draws[:, 1, 1]  # how far it can lie above the population's
    excess_b = draws[:, 1, 0] - draws[:, 0, 1]
    down, up = (float(order_statistic(x, 1 - delta / PARTS)) for x in (excess_a, excess_b))
    most = min(1.0, _largest_difference(first, second, delta / PARTS))
    beyond = excess_a if difference > 0 else excess_b
    count = int(np.count_nonzero(beyond >= abs(difference)))
    pvalue = PARTS * (1 + count) / (1 + beyond.size) if difference else 1.0
    return Comparison(
        difference=difference,
        lower=max(difference - max(down, 0.0), 0.0 - most),
        upper=min(difference + max(up, 0.0), most),
        pvalue=min(1.0, pvalue),
        value_a=value_a,
        value_b=value_b,
        measure=_NAME,
        confidence_level=confidence_level,
        n_resamples=resampler.n_resamples,
        least_pvalue=min(1.0, PARTS * least_of(resampler.n_resamples)),
    )


class _Side:
    """One model: the supports of its classes, its residuals on them, and their witnesses."""

    def __init__(self, rows: ClassRows) -> None:
        self.value = 0.0
        self._columns: list[tuple[Integers, Vector, SmoothNorm, Vector | None]] = []
        for residual, prediction in _residuals(rows):
            support, place = np.unique(prediction, return_inverse=True)
            place = place.reshape(-1)
            norm = SmoothNorm(support)
            masses = sums_by(place, residual, support.size)
            self.value += 0.5 * norm(masses)
            witnesses = norm.witnesses(masses) if masses.any() else None
            self._columns.append((place, residual, norm, witnesses))

    def along(self, sign: Vector) -> tuple[float, float]:
        """Return ‖h‖ and the least ⟨w, h⟩ over the witnesses, h the residuals with these signs."""
        size = along = 0.0
        for place, residual, norm, witnesses in self._columns:
            masses = sums_by(place, sign * residual, norm.prediction.size)
            part = norm(masses)
            size += 0.5 * part
            along += 0.5 * (-part if witnesses is None else float((witnesses @ masses).min()))
        return size, along


def _residuals(rows: ClassRows) -> list[tuple[Vector, Vector]]:
    """Return the residual masses of rows and their predictions, class by class."""
    return [
        (rows.share * ((rows.label == j) - prediction), prediction)
        for j, prediction in enumerate(rows.columns())
    ]


def _largest_difference(first: ClassRows, second: ClassRows, delta: float) -> float:
    """Return the upper end of the interval for ‖c_a - c_b‖, on the supports of both."""
    value, scores = 0.0, np.zeros(first.n_rows)
    same = True
    for (own, a), (other, b) in zip(_residuals(first), _residuals(second), strict=True):
        if np.array_equal(a, b):
            continue
        same = False
        support, place = np.unique(np.concatenate((a, b)), return_inverse=True)
        here, there = np.split(place.reshape(-1), 2)
        masses = sums_by(here, own, support.size) - sums_by(there, other, support.size)
        if not masses.any():  # by chance, and without a witness
            return math.inf
        norm = SmoothNorm(support)
        witness = norm.witness(masses)
        value += 0.5 * norm(masses)
        scores += 0.5 * (own * witness[here] - other * witness[there])
    if same:
        return 0.0
    mean = float(scores.sum())
    deviations = scores - first.share * mean
    error = math.sqrt(float(deviations @ deviations))
    return value + Mean(mean, error, float(np.abs(scores).max())).margin(delta)
