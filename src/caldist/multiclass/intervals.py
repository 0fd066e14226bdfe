r"""Confidence intervals for several classes, by witnesses from other rows.

With dual potentials (r_j0, r_j1) of each class, found on one fifth of the rows, the score
s = ½ Σ_j r_j,1[y = j](v_j) has a mean of at most CW of the population, whatever the law. So the
mean of s over the other rows, less the error of that one mean, is a lower limit; and correlations
of the classes are in it. The scores are between -1 and 1, since |r_j| is at most
|1[y = j] - v_j|.

Rows whose labels found each other's duals are not independent. For duals that are linear in the
data the variance of the mean is twice what it would be otherwise. The duals here are bounded, and
the worst that we know are signs, of class frequencies where all predictions are alike: with two
classes nothing is lost, with many half as much again. Hence the factor 1 + (1 - 2/k)/2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from caldist._util.types import Integers, Vector
from caldist._util.warning import warn
from caldist.data import validate
from caldist.data.class_rows import Classes, ClassRows
from caldist.errors import answering
from caldist.inference.cells import cells_of
from caldist.inference.folds import FOLDS
from caldist.inference.intervals import Interval, interval_of, interval_of_distance
from caldist.inference.limits import normal_quantile
from caldist.inference.resampling import Resampler
from caldist.inference.sample import FEW, units_of
from caldist.measures.certification import DISTANCE
from caldist.measures.lower_distance import lower_distance
from caldist.measures.smooth_ce import smooth_ce as binary_smooth_ce
from caldist.multiclass.cells import upper_limit
from caldist.multiclass.classwise import NULL, certificates
from caldist.multiclass.smooth import smooth_bounds

Measured = Literal["classwise_distance", "smooth_ce", "distance"]

MEASURES = ("classwise_distance", "smooth_ce", DISTANCE)
_STREAM = 7  # the random stream of dealing
_LANDMARKS = 3  # the random stream of landmarks
_DEALINGS = 2
_CENTRES = 60  # landmarks of a witness that is found on a fifth of the rows


@answering
def confidence_interval(
    y_true: ArrayLike,
    y_prob: ArrayLike | None = None,
    *,
    measure: Measured = "classwise_distance",
    method: Literal["cross_fit"] = "cross_fit",
    confidence_level: float = 0.95,
    classes: Classes | None = None,
    normalize: bool = False,
    sample_weight: ArrayLike | None = None,
    rng: validate.Rng = 0,
) -> Interval:
    r"""Return a measure of several classes with a confidence interval for the population's.

    .. math:: \mathrm{lower} = \bar s - z\,\mathrm{se}(\bar s) - \ln(2/\delta)\,m/3

    with :math:`s_i` the score of row i by duals that were found on other rows, m the largest share
    of a row.

    **What it means.** With the given confidence the population's value lies between ``lower`` and
    ``upper``. The value on the sample is biased upwards, so it may lie above the interval's
    middle, or above all of it near calibration.

    **The distance itself.** ``measure="distance"`` is the distance to calibration, whatever is
    behind the predictions, and has no ``value``: :func:`caldist.multiclass.distance_bracket` says
    what is certain of these rows. Its lower end is that of the classwise distance, its upper end
    the cost of the map to the mean labels of cells that are made from the predictions alone. With
    many classes the latter is honest and weak; no method escapes that.

    **What it estimates.** The population's value. The lower end is found by duals from one fifth of
    the rows, evaluated on the other four, over five folds and two dealings: no replicates, and no
    part of it pays for the number of classes. The upper end is the sample's value plus the error
    of one mean, that of the duals of all rows where these stand out of the noise.

    **Cost.** Ten times the solver on a fifth of the rows, for each class.

    Parameters
    ----------
    y_true : array-like of classes
        Numbers 0, 1, …, or names listed in ``classes``.
    y_prob : matrix
        A row per example and a column per class, rows summing to 1.
    measure : "classwise_distance", "smooth_ce" or "distance"
        "smooth_ce" sees miscalibration that cancels in every class, and more noise.
    method : "cross_fit"
        The only one. With two classes it is ``method="cross_fit"`` of
        :func:`caldist.confidence_interval`.
    confidence_level : float
    classes : sequence, optional
        The labels in the order of the columns, where they are not 0, 1, … or the names of a
        frame's columns.
    normalize : bool
        Divide each row by its sum, where rounding keeps rows from summing to 1.
    sample_weight : array-like, optional
        Weights are taken as given, not as random.
    rng : int, numpy.random.Generator or None
        How rows are dealt into fifths. The same rows give the same answer, in any order; None draws
        a fresh seed.

    Returns
    -------
    caldist.inference.Interval

    Warns
    -----
    UserWarning
        With fewer than ten rows, or fewer than ten whose most frequent class is another.

    Examples
    --------
    >>> import numpy as np, caldist
    >>> demo = caldist.datasets.load_demo()
    >>> logistic, forest = (
    ...     np.column_stack([1 - p, p])  # a column for each class
    ...     for p in (demo.y_prob["logistic_regression"], demo.y_prob["random_forest"])
    ... )
    >>> interval = caldist.multiclass.confidence_interval(demo.y_true, logistic)
    >>> interval.lower, interval.measure, interval.method
    (0.0, 'classwise_distance', 'cross_fit')
    >>> caldist.multiclass.confidence_interval(demo.y_true, forest).lower > 0.04
    True
    >>> print(caldist.multiclass.confidence_interval(demo.y_true, forest, measure="distance"))
    With 95% confidence, the distance to calibration of the population is at least 0.04...
    """
    validate.check_choice("measure", measure, MEASURES)
    validate.check_choice("method", method, ("cross_fit",))
    confidence_level = validate.check_fraction("confidence_level", confidence_level)
    resampler = Resampler.of(rng, n_resamples=1)
    rows = ClassRows.of(
        y_true, y_prob, classes=classes, normalize=normalize, sample_weight=sample_weight
    )
    warn_if_few(rows)
    risk = 1 - confidence_level
    value: float | None
    if rows.n_classes == 2 and measure == DISTANCE:
        return interval_of_distance(rows.binary, confidence_level, resampler, "cross_fit")
    if rows.n_classes == 2:
        twin = lower_distance if measure == "classwise_distance" else binary_smooth_ce
        found = interval_of(rows.binary, twin, confidence_level, resampler, "cross_fit")
        value, lower, upper = found.value, found.lower, found.upper
    elif measure == DISTANCE:
        value, (_, lower, _) = None, distance_limits(rows, risk, resampler)
        upper = max(0.0, lower, upper_limit(rows, risk / 2))
    elif measure == "classwise_distance":
        value, lower, upper = distance_limits(rows, risk, resampler)
    else:
        value, lower, upper = smooth_limits(rows, risk, resampler)
    return Interval(
        value=value,
        lower=min(1.0, max(0.0, lower)),
        upper=min(1.0, upper),
        confidence_level=confidence_level,
        method=method,
        n_resamples=0,
        measure=measure,
    )


def warn_if_few(rows: ClassRows) -> None:
    """Warn where no limit is dependable."""
    counts = np.bincount(rows.label, minlength=rows.n_classes)
    others = rows.n_rows - int(counts.max())
    if others < FEW:
        message = (
            f"only {others} of {rows.n_rows} rows have another class than the most frequent one: "
            "limits hold for larger samples. Take them as a rough guide."
        )
        warn(message)


@dataclass
class Scores:
    """Scores of rows by duals that they had no part in, and what labels of the same rates give.

    ``value`` is the score, ``rates`` the sum over classes of the rate of a class near a row's
    prediction, ``first`` and ``second`` those of rate times slope and times its square.
    """

    value: Vector
    rates: Vector
    first: Vector
    second: Vector

    @classmethod
    def of(cls, size: int) -> Scores:
        """Return zeros."""
        return cls(*(np.zeros(size) for _ in range(4)))

    def add_class(self, value: Vector, slope: Vector, rate: Vector) -> None:
        """Add what a class gives."""
        self.value += value
        self.rates += rate
        self.first += rate * slope
        self.second += rate * slope**2

    def mean(self, share: Vector) -> tuple[float, float]:
        """Return the mean score and its standard error.

        That is at least what labels of the rates near the predictions would give: it protects
        rare classes.
        """
        mean = float(share @ self.value)
        found = float(share**2 @ (self.value - mean) ** 2)
        rates = np.maximum(self.rates, 1e-300)
        floor = float(share**2 @ np.maximum(self.second / rates - (self.first / rates) ** 2, 0.0))
        return mean, math.sqrt(max(found, floor))


def folds(rows: ClassRows, resampler: Resampler) -> Integers:
    """Return the fold of each row, a line for each dealing; the order of rows does not matter."""
    mixed = np.zeros(rows.n_rows, dtype=np.uint64)
    for column in rows.columns():
        mixed = (mixed ^ (column + 0.0).view(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    order = np.lexsort((rows.share, rows.label, mixed))
    fold = np.empty((_DEALINGS, rows.n_rows), dtype=np.int64)
    fold[:, order] = resampler.stream(_STREAM).integers(0, FOLDS, fold.shape)
    return fold


def _crossing(n_classes: int) -> float:
    """Return how much larger the error of a mean is because rows found each other's duals."""
    return math.sqrt(1 + (1 - 2 / n_classes) / 2)


def _fold_masses(fold: Integers, share: Vector) -> Vector:
    return np.array([np.bincount(line, share, FOLDS) for line in fold])


def distance_limits(
    rows: ClassRows, risk: float, resampler: Resampler, tol: float | None = None
) -> tuple[float, float, float]:
    """Return CW of the sample, and limits of the population's, each with half the risk."""
    share, fold = rows.share, folds(rows, resampler)
    masses = _fold_masses(fold, share)
    crossed, own = Scores.of(rows.n_rows), Scores.of(rows.n_rows)
    value = upper = noise = 0.0
    for problem, proof in certificates(rows, tol):
        value += 0.5 * proof.lower
        upper += 0.5 * proof.upper
        v, label = problem.prediction, problem.label.astype(np.int64)
        support = problem.joint.prediction
        place = np.minimum(np.searchsorted(support, v), support.size - 1)
        rate = cells_of(units_of(problem)).rate[place]
        noise += NULL * math.sqrt(float(share**2 @ (v * (1 - v))))
        zero, one = (np.interp(v, proof.node, p) for p in (proof.potential0, proof.potential1))
        own.add_class(0.5 * np.where(label == 1, one, zero), 0.5 * (one - zero), rate)
        crossed.add_class(*_crossed(place, label, share, fold, masses, support), rate)
    mean, error = crossed.mean(share)
    error *= _crossing(rows.n_classes)
    z, finite_sample_term = -normal_quantile(risk / 2), math.log(2 / risk) * float(share.max()) / 3
    standard_error = math.sqrt(float(share**2 @ (1 - rows.own) ** 2))
    above = z * standard_error
    if value > 2 * (noise + z * standard_error):  # it stands out, and with it the duals
        above = min(above, z * own.mean(share)[1])
    return value, mean - z * error - finite_sample_term, upper + above + finite_sample_term


def _crossed(
    place: Integers,
    label: Integers,
    share: Vector,
    fold: Integers,
    masses: Vector,
    support: Vector,
) -> tuple[Vector, Vector]:
    """Return half the duals of a class from other rows, and half their slopes, row by row."""
    size = support.size
    value, slope = np.zeros(place.size), np.zeros(place.size)
    key = place + size * label
    for line, parts in zip(fold, masses, strict=True):
        for at in range(FOLDS):
            if not 0 < parts[at] < 1:
                continue
            inside = line == at
            trained = np.bincount(key[inside], share[inside], 2 * size).astype(np.float64)
            zero, one = lower_distance.dual(support, trained[:size], trained[size:])
            scale = 0.5 / (1 - parts[at]) / FOLDS / _DEALINGS
            value += np.where(inside, 0.0, scale * np.concatenate((zero, one))[key])
            slope += np.where(inside, 0.0, scale * (one - zero)[place])
    return value, slope


def smooth_limits(rows: ClassRows, risk: float, resampler: Resampler) -> tuple[float, float, float]:
    """Return smCE_k of the sample, and limits of the population's, each with half the risk."""
    share, fold = rows.share, folds(rows, resampler)
    masses = _fold_masses(fold, share)
    stream = resampler.stream(_LANDMARKS)
    dense = rows.dense
    witness = np.zeros(dense.shape)  # the mean over folds, of other rows, halved
    for line, parts in zip(fold, masses, strict=True):
        for at in range(FOLDS):
            inside = line == at
            if not 0 < parts[at] < 1:
                continue
            trained = smooth_bounds(
                rows.take(np.flatnonzero(inside)), "landmarks", _CENTRES, stream
            )
            scale = 0.5 / (1 - parts[at]) / FOLDS / _DEALINGS
            witness[~inside] += scale * trained.witnesses(dense[~inside])
    # Labels of the predicted frequencies stand for those near a prediction.
    expected = np.einsum("ij,ij->i", witness, dense)
    own = witness[np.arange(rows.n_rows), rows.label]
    second = np.einsum("ij,ij,ij->i", witness, witness, dense)
    scores = Scores(own - expected, np.ones(rows.n_rows), expected, second)
    mean, error = scores.mean(share)
    error *= _crossing(rows.n_classes)
    bounds = smooth_bounds(rows, rng=stream)
    lower, upper = bounds.ends
    z, finite_sample_term = -normal_quantile(risk / 2), math.log(2 / risk) * float(share.max()) / 3
    standard_error = math.sqrt(float(share**2 @ (1 - rows.own) ** 2))
    return (
        lower,
        mean - z * error - finite_sample_term,
        upper + z * standard_error + finite_sample_term,
    )
