"""Net benefit: what decisions at a threshold are worth."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caldist._util.numbers import ends
from caldist._util.results import Result
from caldist._util.text_tables import aligned
from caldist._util.types import Vector
from caldist.data import validate
from caldist.data.joint import Joint
from caldist.data.rows import Rows
from caldist.errors import InvalidInput, InvalidType, answering
from caldist.inference.limits import normal_quantile, warn_if_few
from caldist.inference.sample import Units, units_of

_SHOWN = 20  # lines of a printed table


@dataclass(frozen=True, eq=False)
class NetBenefit(Result):
    """The result of :func:`caldist.clinical.net_benefit`: one value for each threshold.

    Attributes
    ----------
    threshold
        The thresholds, in the order given.
    treated
        The share of the rows that are treated: those with a prediction of at least the threshold.
    model
        The net benefit of treating these rows; 0 where nobody is treated.
    treat_all
        That of treating every row. Treating none has 0.
    lower, upper
        The ends of the interval for ``model``, at each threshold by itself.
    confidence_level
        Of each interval.
    """

    threshold: Vector
    treated: Vector
    model: Vector
    treat_all: Vector
    lower: Vector
    upper: Vector
    confidence_level: float

    def _lines(self) -> list[dict[str, Any]]:
        names = ("threshold", "treated", "model", "treat_all", "lower", "upper")
        columns = [getattr(self, name).tolist() for name in names]
        return [dict(zip(names, line, strict=True)) for line in zip(*columns, strict=True)]

    def __str__(self) -> str:
        head = [
            "threshold",
            "treated",
            "model",
            f"{100 * self.confidence_level:g}% interval",
            "treat all",
        ]
        lines = [
            [
                f"{line['threshold']:.4g}",
                f"{100 * line['treated']:.3g}%" if line["treated"] > 0 else "nobody",
                f"{line['model']:.4g}",
                f"{ends(line['lower'], line['upper'])}",
                f"{line['treat_all']:.4g}",
            ]
            for line in self._lines()
        ]
        more = len(lines) - _SHOWN
        rest = [f"… and {more} more thresholds"] if more > 0 else []
        return "\n".join([*aligned([head, *lines[:_SHOWN]], left=()), *rest])


@answering
def net_benefit(
    y_true: ArrayLike | Joint,
    y_prob: ArrayLike | None = None,
    *,
    thresholds: ArrayLike,
    confidence_level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    clusters: ArrayLike | None = None,
) -> NetBenefit:
    r"""Return the net benefit of decisions at risk thresholds: decision curve analysis.

    .. math:: \mathrm{NB}(t) = P(v \ge t,\, y = 1) - \frac{t}{1 - t} P(v \ge t,\, y = 0)

    **What it means.** Whoever acts on a risk of t or more says that a true positive is worth
    (1 - t)/t false positives. Net benefit counts true positives per row, less false positives at
    that price: 0.1 is worth ten true positives per hundred rows, and none of the false ones. A
    model is of use at t if its net benefit is above both ``treat_all`` and 0, that of treating
    none. A row is treated when its prediction is at least t.

    **What it estimates.** The population's net benefit, without bias. The intervals are Wilson's
    score intervals for the mean of the benefit of a row, at each threshold by itself: they also
    hold where few rows are treated, or none, and never leave the possible values, -t/(1 - t) to 1.
    Weights count by their effective sample size. With clusters the standard error is that of sums
    over clusters; where few clusters have treated rows of a label, intervals allow for a whole
    cluster of them, and are wide.

    **From a joint.** If predictions were rounded to cells, it is not known which rows of the cell
    around a threshold are treated: the ends are moved outwards by the most that can be made of
    them. Thresholds at edges of cells, such as 0.25 on a grid of 2^16, lose nothing.

    **Cost.** O(n log n), a sort; with clusters also a pass over the rows for each threshold.

    Parameters
    ----------
    y_true : array-like of 0 and 1, or Joint
        A joint stands for labels, predictions and weights at once.
    y_prob : array-like in [0, 1]
        The predicted probability of label 1.
    thresholds : array-like in [0, 1)
        The risks from which on one would act.
    confidence_level : float
        Of each interval.
    sample_weight : array-like, optional
    pos_label : optional
        The value of ``y_true`` that counts as label 1, where labels are not 0 and 1.
    clusters : array-like, optional
        The cluster of each row, where rows are not independent.

    Returns
    -------
    NetBenefit

    Warns
    -----
    UserWarning
        With fewer than ten rows of either label, or clusters that have one of it.

    References
    ----------
    Vickers and Elkin, "Decision curve analysis: a novel method for evaluating prediction models",
    Medical Decision Making 2006. Wilson, "Probable inference, the law of succession, and
    statistical inference", 1927. Korn and Graubard, "Confidence intervals for proportions with
    small expected number of positive counts estimated from survey data", 1998.

    Examples
    --------
    >>> import caldist
    >>> demo = caldist.datasets.load_demo()
    >>> y_true, y_prob = demo.y_true, demo.y_prob["random_forest"]
    >>> benefit = caldist.clinical.net_benefit(y_true, y_prob, thresholds=[0.1, 0.5])
    >>> benefit.threshold, benefit.model.round(4)
    (array([0.1, 0.5]), array([0.471 , 0.4769]))
    """
    confidence_level = validate.check_fraction("confidence_level", confidence_level)
    at = check_thresholds(thresholds)
    rows = Rows.of(
        y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label, clusters=clusters
    )
    warn_if_few(units_of(rows))
    return benefit_of(rows, at, confidence_level)


def check_thresholds(thresholds: ArrayLike) -> Vector:
    """Return thresholds as contiguous float64 in [0, 1)."""
    if isinstance(thresholds, numbers.Real):
        reason, remedy = "a list of thresholds is needed", f"Pass [{thresholds}]."
        raise InvalidType(argument="thresholds", value=thresholds, reason=reason, remedy=remedy)
    array = validate.real_vector(thresholds, "thresholds")
    bad = ~((array >= 0) & (array < 1))
    if bad.any():
        why = "a threshold is at least 0 and below 1, where a false positive costs too much"
        validate.fail("thresholds", array, bad, why)
    return np.ascontiguousarray(array, dtype=np.float64)


def benefit_of(rows: Rows, threshold: Vector, confidence_level: float) -> NetBenefit:
    """Return the net benefit of rows that were checked."""
    joint, units = rows.joint, units_of(rows)
    odds = threshold / (1 - threshold)
    first = np.searchsorted(joint.prediction, threshold, side="left")
    share = [units.at_predictions(units.mass * (units.label == k)) for k in (0, 1)]
    low, high = _around(joint, threshold, first)
    false, true = (_from(part) for part in share)
    value = true[first] - odds * false[first]
    z = -normal_quantile((1 - confidence_level) / 2)
    variance, part0, part1 = _errors(units, first, odds, value)
    below = _score_distance(variance, part0, np.maximum(value + odds, 0.0), z)
    above = _score_distance(variance, part1, np.maximum(1 - value, 0.0), z)
    rate = float(share[1].sum())
    return NetBenefit(
        threshold=threshold,
        treated=false[first] + true[first],
        model=value,
        treat_all=rate - odds * (1 - rate),
        lower=true[high] - odds * false[low] - below,
        upper=true[low] - odds * false[high] + above,
        confidence_level=confidence_level,
    )


def _from(values: Vector) -> Vector:
    """Return the sums from each place on, and 0 behind the last."""
    return np.append(np.cumsum(values[::-1])[::-1], 0.0)


def _score_distance(variance: Vector, part: Vector, extreme: Vector, z: float) -> Vector:
    """Return how far the end of a score interval lies from the mean of n parts' benefits.

    ``variance`` is that of the mean, ``part`` stands for 1/n, and ``extreme`` is how far the
    largest, or least, benefit lies from the mean. The end is the mean of the mixture of what was
    seen with that extreme benefit, from whose own standard error the mean seen lies z times away.
    For shares of 0 and 1 that is Wilson's interval.
    """
    slope = np.divide(variance, extreme, out=np.zeros_like(variance), where=extreme > 0)
    q = z**2 * part
    half = (q * extreme - z**2 * slope) / 2
    return np.asarray((half + np.sqrt(half**2 + (1 + q) * z**2 * variance)) / (1 + q))


def _errors(
    units: Units, first: NDArray[np.intp], odds: Vector, value: Vector
) -> tuple[Vector, Vector, Vector]:
    """Return the variance of the mean of 1(v ≥ t)(y − (1 − y) odds), and two effective 1/n.

    These are for treated rows of label 0 and of label 1 that were not seen. Clusters of which few
    have such rows may come whole; the more have some, the more the design effect is believed.
    """
    square = units.count * units.share**2
    rows = float(square.sum())
    false, true = (_from(units.at_predictions(square * (units.label == k)))[first] for k in (0, 1))
    others = np.maximum(0.0, rows - false - true)
    variance = true * (1 - value) ** 2 + false * (odds + value) ** 2 + others * value**2
    if units.cluster is None:
        part = np.full_like(value, rows)
        return variance, part, part
    whole = float((units.part_shares() ** 2).sum())
    clustered, part = np.empty_like(value), np.empty((2, value.size))
    for k, (start, price) in enumerate(zip(first, odds, strict=True)):
        treated = units.place >= start
        clustered[k] = units.standard_error(treated * np.where(units.label == 1, 1.0, -price)) ** 2
        effect = clustered[k] / variance[k] if variance[k] > 0 else 1.0
        some = units.chosen(np.flatnonzero(treated), units.cluster)
        for label in (0, 1):
            _, number = some.effective_size(label)
            part[label, k] = (number * min(effect * rows, whole) + whole) / (number + 1)
    return clustered, part[0], part[1]


def _around(
    joint: Joint, threshold: Vector, first: NDArray[np.intp]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return from where on rows may be treated, and from where on they are, whatever rounding did.

    ``first`` says it of the predictions as they are. Only rows of the cell that a threshold lies in
    may have been rounded to its other side.
    """
    if joint.radius == 0:
        return first, first
    if joint.grid is None:
        raise InvalidInput(
            argument="joint",
            reason="has predictions that were rounded by an unknown amount each (radius "
            f"{joint.radius:.3g} is a mean), so it is not known which are above a threshold",
            remedy="Make it on a grid, with caldist.summarize or .coarsen(bits), or pass the rows.",
        )
    place = threshold * 2.0**joint.grid.bits
    low, high = (np.searchsorted(joint.grid.cell, edge(place)) for edge in (np.floor, np.ceil))
    return low, high
