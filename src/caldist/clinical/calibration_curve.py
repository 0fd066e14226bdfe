"""The binned calibration curve, as scikit-learn has it, with intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caldist._util.numbers import ends
from caldist._util.results import Result
from caldist._util.text_tables import aligned
from caldist._util.types import Integers, Vector
from caldist.data import validate
from caldist.data.joint import Joint
from caldist.data.rows import Rows
from caldist.errors import answering
from caldist.inference.limits import normal_quantile
from caldist.inference.sample import Units, units_of
from caldist.measures.binned_ece import MOST_BINS
from caldist.measures.bins import Strategy


@dataclass(frozen=True, eq=False)
class CalibrationCurve(Result):
    """The result of :func:`caldist.clinical.calibration_curve`: a value for each bin with rows.

    Attributes
    ----------
    prob_true
        The frequency of label 1 in the bin.
    prob_pred
        The mean prediction in it.
    count
        Its rows; of a summary of rows with weights, as many of equal weight as say as much.
    lower, upper
        The ends of the interval for the population's frequency, in each bin by itself.
    bin_lower, bin_upper
        The edges of the bin.
    confidence_level
        Of each interval.
    """

    prob_true: Vector
    prob_pred: Vector
    count: Integers
    lower: Vector
    upper: Vector
    bin_lower: Vector
    bin_upper: Vector
    confidence_level: float

    def __iter__(self) -> NoReturn:
        """Refuse to be unpacked as the pair of arrays that scikit-learn's function returns."""
        message = (
            "a CalibrationCurve is not unpacked: its fields have names, as in "
            "curve = caldist.clinical.calibration_curve(…); curve.prob_true, curve.prob_pred."
        )
        raise TypeError(message)

    def _lines(self) -> list[dict[str, Any]]:
        names = ("bin_lower", "bin_upper", "prob_pred", "prob_true", "count", "lower", "upper")
        columns = [getattr(self, name).tolist() for name in names]
        return [dict(zip(names, line, strict=True)) for line in zip(*columns, strict=True)]

    def __str__(self) -> str:
        level = f"{100 * self.confidence_level:g}% interval"
        rows = [["bin", "rows", "predicted", "observed", level]]
        rows += [
            [
                f"{line['bin_lower']:.3g} to {line['bin_upper']:.3g}",
                f"{line['count']:,}",
                f"{line['prob_pred']:.3g}",
                f"{line['prob_true']:.3g}",
                f"{ends(line['lower'], line['upper'], 3)}",
            ]
            for line in self._lines()
        ]
        return "\n".join(aligned(rows, left={0}))


@answering
def calibration_curve(
    y_true: ArrayLike | Joint,
    y_prob: ArrayLike | None = None,
    *,
    n_bins: int = 10,
    strategy: Strategy = "uniform",
    confidence_level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    clusters: ArrayLike | None = None,
) -> CalibrationCurve:
    """Return mean prediction and frequency of label 1 in bins of the predictions.

    ``prob_true`` and ``prob_pred`` are those of ``sklearn.calibration.calibration_curve``, to the
    bit: a bin contains its upper edge and not its lower one, the first contains both; "uniform"
    edges are ``numpy.linspace(0, 1, n_bins + 1)``, "quantile" edges ``numpy.percentile`` of the
    predictions. (:func:`caldist.binned_ece` has bins that contain their lower edge.) Beside them
    are the rows of each bin and an interval.

    **What it means.** How often label 1 comes true where predictions are about the same, as the
    classic reliability diagram shows it (:class:`caldist.plots.BinnedDisplay`). What happens
    within a bin is not seen, and the picture depends on the bins.

    **What it estimates.** The frequency of the population in each bin, given where the bins are.
    The interval is Wilson's. With weights its rows are the effective ones, (Σw)²/Σw²; with clusters
    as many as have the standard error that the sums over clusters show. It holds in each bin by
    itself, for the bins that were chosen.

    **From a joint** of rounded predictions, bins are of whole cells, each in the place of its mean.

    **Cost.** O(n) and a sort.

    Parameters
    ----------
    y_true : array-like of 0 and 1, or Joint
        A joint stands for labels, predictions and weights at once.
    y_prob : array-like in [0, 1]
        The predicted probability of label 1.
    n_bins : int
        How many bins; those without rows are left out.
    strategy : "uniform" or "quantile"
        Bins of equal width, or between quantiles of the predictions. Rows with weights count as
        much as their weights.
    confidence_level : float
        Of each interval.
    sample_weight : array-like, optional
    pos_label : optional
        The value of ``y_true`` that counts as label 1, where labels are not 0 and 1.
    clusters : array-like, optional
        The cluster of each row, where rows are not independent.

    Returns
    -------
    CalibrationCurve

    Examples
    --------
    >>> import caldist
    >>> y_true = [0, 0, 0, 0, 1, 1, 1, 1, 1]
    >>> y_prob = [0.1, 0.2, 0.3, 0.4, 0.65, 0.7, 0.8, 0.9, 1.0]
    >>> curve = caldist.clinical.calibration_curve(y_true, y_prob, n_bins=3)
    >>> curve.prob_true, curve.prob_pred.round(3), curve.count
    (array([0. , 0.5, 1. ]), array([0.2  , 0.525, 0.85 ]), array([3, 2, 4]))
    """
    n_bins = validate.check_count("n_bins", n_bins, maximum=MOST_BINS)
    validate.check_choice("strategy", strategy, ("uniform", "quantile"))
    confidence_level = validate.check_fraction("confidence_level", confidence_level)
    rows = Rows.of(
        y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label, clusters=clusters
    )
    return curve_of(rows, n_bins, strategy, confidence_level)


def curve_of(
    rows: Rows, n_bins: int, strategy: Strategy, confidence_level: float
) -> CalibrationCurve:
    """Return the curve of rows that were checked."""
    if strategy == "uniform":
        edges = np.linspace(0.0, 1.0, n_bins + 1)
    else:
        edges = _quantiles(rows, np.linspace(0, 1, n_bins + 1))
    label, prediction, weight = _columns(rows)
    place = np.searchsorted(edges[1:-1], prediction)
    # Sums in the order of the rows: scikit-learn's are made so, and a sum depends on its order.
    total = np.bincount(place, weights=weight, minlength=n_bins)
    ones = np.bincount(place, weights=_times(weight, label), minlength=n_bins)
    sums = np.bincount(place, weights=_times(weight, prediction), minlength=n_bins)
    filled = total > 0
    frequency = ones[filled] / total[filled]
    count, effective = _sizes(units_of(rows), edges, frequency, filled)
    lower, upper = _wilson(frequency, effective, -normal_quantile((1 - confidence_level) / 2))
    return CalibrationCurve(
        prob_true=frequency,
        prob_pred=sums[filled] / total[filled],
        count=count,
        lower=lower,
        upper=upper,
        bin_lower=edges[:-1][filled],
        bin_upper=edges[1:][filled],
        confidence_level=confidence_level,
    )


def _columns(rows: Rows) -> tuple[Vector, Vector, Vector | None]:
    """Return labels, predictions and weights; of a joint, a row for each mass."""
    if not rows.is_summary:
        return rows.label.astype(np.float64), rows.prediction, rows.weight
    joint = rows.joint
    size = joint.prediction.size
    label = np.repeat([0.0, 1.0], size)
    return label, np.tile(joint.prediction, 2), np.concatenate((joint.mass0, joint.mass1))


def _times(weight: Vector | None, values: Vector) -> Vector:
    return values if weight is None else weight * values


def _quantiles(rows: Rows, level: Vector) -> Vector:
    """Return quantiles between the two nearest rows; with weights, of as many rows as there are."""
    if not rows.is_summary and rows.weight is None:
        return np.asarray(np.percentile(rows.prediction, level * 100))
    joint = rows.joint
    n_rows = joint.n_rows or units_of(rows).n_rows
    below = np.cumsum(joint.mass0 + joint.mass1) * (n_rows / joint.total)
    at = level * (n_rows - 1)
    low = np.floor(at)
    last = joint.prediction.size - 1
    first, second = (
        joint.prediction[np.minimum(np.searchsorted(below, row + 1 - 1e-6), last)]
        for row in (low, np.minimum(low + 1, n_rows - 1))
    )
    return np.asarray(first + (at - low) * (second - first))


def _sizes(
    units: Units, edges: Vector, frequency: Vector, filled: NDArray[np.bool_]
) -> tuple[Integers, Vector]:
    """Return the rows of each bin, and how many independent ones of equal weight say as much."""
    number = np.cumsum(filled) - 1  # of each bin among those that are filled
    place = number[np.searchsorted(edges[1:-1], units.prediction[units.place])]
    size = frequency.size
    count = np.bincount(place, weights=units.count, minlength=size)
    mass = np.bincount(place, weights=units.mass, minlength=size)
    if units.cluster is None:
        square = np.bincount(place, weights=units.count * units.share**2, minlength=size)
        effective = np.ones(size)  # where the weight is too small for its square to be a number
        np.divide(mass**2, square, out=effective, where=square > 0)
        effective = np.maximum(effective, 1.0)
    else:
        effective = np.empty(size)
        for k in range(size):
            inside = place == k
            share = np.where(inside, units.share, 0.0) / mass[k]
            part = units.cluster_sums(share)
            # As if all rows of a cluster were one, or by the error that is seen, if that is more.
            alone = 1 / float(part @ part)
            error = units.cluster_sums(share * (units.label - frequency[k]))
            variance = float(error @ error)
            binomial = frequency[k] * (1 - frequency[k])
            seen = binomial / variance if variance > 0 and binomial > 0 else alone
            effective[k] = min(count[k], seen)
    return np.rint(count).astype(np.int64), np.asarray(effective)


def _wilson(frequency: Vector, rows: Vector, z: float) -> tuple[Vector, Vector]:
    """Return Wilson's interval of a binomial frequency."""
    shrink = 1 + z**2 / rows
    centre = (frequency + z**2 / (2 * rows)) / shrink
    half = z * np.sqrt(frequency * (1 - frequency) / rows + (z / (2 * rows)) ** 2) / shrink
    lower = np.where(frequency == 0, 0.0, np.maximum(0.0, centre - half))
    upper = np.where(frequency == 1, 1.0, np.minimum(1.0, centre + half))
    return np.minimum(lower, frequency), np.maximum(upper, frequency)
