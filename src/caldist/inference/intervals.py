"""Confidence intervals for the population's value of a measure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from numpy.typing import ArrayLike

from caldist._util.numbers import ends, least, most
from caldist._util.results import Result
from caldist.data import validate
from caldist.data.joint import Joint
from caldist.data.rows import Rows
from caldist.errors import InvalidInput, answering
from caldist.inference.limits import Limits, warn_if_few
from caldist.inference.recipes import limits_of
from caldist.inference.resampling import Resampler
from caldist.inference.sample import units_of
from caldist.measures.base import Measure
from caldist.measures.certification import DISTANCE, rounding_in_words
from caldist.measures.lower_distance import lower_distance
from caldist.measures.registry import all_measures, find

Method = Literal["auto", "resampling", "cross_fit", "finite_sample"]

MANY = 100_000
"""Rows from which cross-fitting alone is as good as replicates, and far cheaper."""


@dataclass(frozen=True)
class Interval(Result):
    """A number of the sample and a confidence interval for the population's.

    Attributes
    ----------
    value
        What the measure's own function returns; None for the distance to calibration, which rows do
        not tell exactly, and where ``note`` says why there is none. An error of calibration is
        biased upwards, so near perfect calibration the interval lies mostly below it;
        ``surrogate_interval_ce`` and ``interval_ce`` may lie outside of the interval.
    lower, upper
        The ends of the interval. They are infinite where ``note`` says why nothing is known; then
        ``to_dict`` and ``to_frame`` have None.
    confidence_level
        The probability with which such an interval holds the population's value.
    method
        ``"resampling"``, ``"cross_fit"``, ``"finite_sample"``, or ``"normal"`` where the standard
        error of the value is known, as of a mean.
    n_resamples
        The replicates that were made; 0 where none are needed.
    measure
        The name of the measure.
    rounding
        By how much rounded predictions may have changed the value, which the ends allow for; 0 for
        exact ones, None where only the ends are known to allow for it.
    note
        Why there is no value or no interval; empty where there is.
    """

    value: float | None
    lower: float
    upper: float
    confidence_level: float
    method: str = ""
    n_resamples: int = 0
    measure: str = ""
    rounding: float | None = 0.0
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain Python values, ready for JSON."""
        content = super().to_dict()
        for end in ("lower", "upper"):
            content[end] = content[end] if math.isfinite(content[end]) else None
        return content

    def __str__(self) -> str:
        level = f"{100 * self.confidence_level:g}%"
        if self.value is None and self.note:
            return f"no value: {self.note}"
        if self.value is None:
            return (
                f"With {level} confidence, the distance to calibration of the population is at "
                f"least {least(self.lower)} and at most {most(self.upper)}, whatever is behind the "
                f"predictions.{rounding_in_words(self.rounding)}"
            )
        if self.note:
            return f"{self.value:.4g} (no interval: {self.note})"
        text = f"{self.value:.4g}, {level} confidence interval {ends(self.lower, self.upper)}"
        if self.rounding == 0:
            return text
        by = "" if self.rounding is None else f", by at most {most(self.rounding, 2)}"
        return f"{text}, moved outwards for the rounding of the predictions{by}"


@answering
def confidence_interval(
    y_true: ArrayLike | Joint,
    y_prob: ArrayLike | None = None,
    *,
    measure: str | Measure[Any] = "smooth_ce",
    confidence_level: float = 0.95,
    method: Method = "auto",
    n_resamples: int = 999,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    clusters: ArrayLike | None = None,
    rng: validate.Rng = 0,
    progress: bool = False,
) -> Interval:
    r"""Return a confidence interval for the population's value of a measure.

    **What it means.** If rows are drawn again and again from one population, at least about the
    given share of the intervals hold the population's value, perfectly calibrated populations
    included. There the percentile bootstrap's interval never does: the value on a sample is above
    0, and those on its resamples are higher still.

    **How it is made.** The lower end is the better one of two. The first takes off the value what
    the measure, a norm of the residuals, makes of noise alone: the larger one of two quantiles,
    over random signs of the residuals and over labels drawn from the predictions. The second
    splits the rows: functions that attain the norm on one fifth are evaluated on the other four,
    and the normal error of that mean is taken off, averaged over folds. It needs no replicates and
    is far better where predictions are not calibrated; ``"cross_fit"`` uses it alone. The upper end
    adds the normal error of one mean, that with the function which attains the norm, and a term
    for rare labels; that of the lower distance uses its own dual once the value is twice the noise.
    The lower distance has a closed form for what a replicate can change; the interval of
    ``interval_ce`` reaches from the lower end of ``lower_distance`` to the upper end of
    ``surrogate_interval_ce``; the Brier score is a mean.

    ``"finite_sample"`` uses inequalities proved for every n and every population; its intervals
    are several times as wide. For ``weighted_ce`` they suppose that no function is larger anywhere
    than it is at these predictions.

    **The distance itself.** ``measure="distance"`` is the distance to calibration, whatever is
    behind the predictions, and has no ``value``: :func:`caldist.distance_bracket` says what is
    certain of these rows. Its lower end is that of the lower distance. Its upper end is the cost of
    a map that is exactly calibrated: that of predictions to the mean label of their cell,
    :math:`\sum_c E[|v - \mu_c|; c]`, and the error of this one mean. Cells are about three
    standard errors of their mean label wide, made from the predictions alone; or neighbouring ones
    are merged as is best on two fifths of the rows and paid for on the others, if that is less. A
    row has no part in the mean label that it is compared with.

    **What it estimates.** The population's value. ``value`` itself is the sample's.

    **From a joint.** A replicate costs one pass over the distinct predictions, however many rows
    they stand for. If predictions were rounded, both ends are moved outwards by the certified
    effect of that. Rows with weights are represented by as many of equal weight as have the same
    standard error.

    **Cost.** A sort, some ten times the measure itself, and two passes over the rows for each
    replicate, on all cores (or as many threads as the environment variable
    ``CALDIST_NUM_THREADS`` says). ``"cross_fit"`` makes no replicates. Memory is
    O(n + n_resamples).

    Parameters
    ----------
    y_true : array-like of 0 and 1, or Joint
        A joint stands for labels, predictions and weights at once.
    y_prob : array-like in [0, 1]
        The predicted probability of label 1.
    measure : measure or its name
        "distance", or ``caldist.smooth_ce``, ``kernel_ce`` (Laplace or Gaussian kernel),
        ``random_interval_ce``, ``weighted_ce.using(functions=…)``, ``surrogate_interval_ce``,
        ``lower_distance``, ``interval_ce`` or ``brier_score``. Options are bound to it:
        ``measure=caldist.kernel_ce.using(bandwidth=0.1)``. The ECE, binned ECE and upper distance
        have no valid interval.
    confidence_level : float
        Between 0 and 1.
    method : "auto", "resampling", "cross_fit" or "finite_sample"
        "auto" is resampling below 100,000 rows and "cross_fit" from there on, which is then as
        narrow to within a few percent and far cheaper.
    n_resamples : int
        The number of replicates, where there are any: at least 2/(1 - confidence_level) - 1.
    sample_weight : array-like, optional
        Weights multiply the residuals and are taken as given, not as random.
    pos_label : optional
        The value of ``y_true`` that counts as label 1, where labels are not 0 and 1.
    clusters : array-like, optional
        The cluster of each row, by numbers, text or other hashable labels. Rows of one cluster, of
        one patient or one game, may depend on each other in any way; clusters are independent.
        Right for many of them. Where those that have one of the labels are worth fewer than 100
        of equal mass, labels are drawn that depend within a cluster as much as they seem to, and
        two standard errors more, because what comes rarely and at once may not have come. With
        clusters worth fewer than ten in all they depend as much as they can.
    rng : int, numpy.random.Generator or None
        The same rows give the same answer, in any order and on any number of cores; None draws a
        fresh seed.
    progress : bool
        Show a progress bar after two seconds.

    Returns
    -------
    Interval

    Warns
    -----
    UserWarning
        With fewer than ten rows of either label, or clusters that have one of it, unequal ones
        counting for as many as have the same standard error; not with ``method="finite_sample"``,
        which holds for any number.

    Examples
    --------
    >>> import caldist
    >>> demo = caldist.datasets.load_demo()
    >>> y_true, y_prob = demo.y_true, demo.y_prob["logistic_regression"]
    >>> interval = caldist.confidence_interval(y_true, y_prob)
    >>> interval.lower <= 0 < interval.upper < 0.02
    True
    >>> forest = caldist.confidence_interval(y_true, demo.y_prob["random_forest"])
    >>> forest.lower > 0.03, forest.value == caldist.smooth_ce(y_true, demo.y_prob["random_forest"])
    (True, True)
    >>> joint = caldist.Joint.from_arrays(y_true, y_prob)
    >>> caldist.confidence_interval(joint) == interval
    True
    >>> print(caldist.confidence_interval(y_true, y_prob, measure="distance"))
    With 95% confidence, the distance ... is at least 0 and at most 0.0..., whatever is behind ...
    """
    chosen = measure_asked_for(measure)
    confidence_level = validate.check_fraction("confidence_level", confidence_level)
    validate.check_choice("method", method, ("auto", "resampling", "cross_fit", "finite_sample"))
    resampler = Resampler.of(rng, n_resamples=n_resamples, progress=progress)
    rows = Rows.of(
        y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label, clusters=clusters
    )
    if method != "finite_sample":
        warn_if_few(units_of(rows))
    if chosen is None:
        return interval_of_distance(rows, confidence_level, resampler, method)
    return interval_of(rows, chosen, confidence_level, resampler, method)


def interval_of(
    rows: Rows,
    measure: Measure[Any],
    confidence_level: float,
    resampler: Resampler,
    method: Method = "auto",
) -> Interval:
    """Return the interval of rows that were checked."""
    limits = Limits.of(rows, 1 - confidence_level, resampler, chosen_method(rows, method))
    value, lower, upper = limits_of(measure, limits, rows.joint)
    ceiling = measure.facts.ceiling
    used = limits.method
    if measure.facts.loss is not None and used != "finite_sample":
        used = "normal"
    ends = measure.rounding(rows.joint, value)
    return Interval(
        value=value,
        lower=float(min(max(lower, 0.0), ceiling)),
        upper=float(min(upper, ceiling)),
        confidence_level=confidence_level,
        method=used,
        n_resamples=resampler.n_resamples if used == "resampling" else 0,
        measure=str(measure),
        rounding=None if ends is None else max(value - ends[0], ends[1] - value),
    )


def interval_of_distance(
    rows: Rows, confidence_level: float, resampler: Resampler, method: Method = "auto"
) -> Interval:
    """Return the interval of the distance to calibration, of rows that were checked."""
    if method == "finite_sample":
        raise InvalidInput(
            argument="method",
            value=method,
            reason="no limits of the distance itself are proved for every number of rows",
            remedy="Use measure='lower_distance', or another method.",
        )
    limits = Limits.of(rows, 1 - confidence_level, resampler, chosen_method(rows, method))
    _, lower, _ = limits_of(lower_distance, limits, rows.joint)
    lower = min(1.0, max(0.0, lower))
    return Interval(
        value=None,
        lower=lower,
        upper=min(1.0, max(lower, limits.distance(rows.joint))),
        confidence_level=confidence_level,
        method=limits.method,
        n_resamples=resampler.n_resamples if limits.method == "resampling" else 0,
        measure=DISTANCE,
        rounding=rows.joint.radius,
    )


def measure_asked_for(measure: object) -> Measure[Any] | None:
    """Return the measure whose limits are asked for; None for the distance to calibration."""
    if isinstance(measure, str) and measure == DISTANCE:
        return None
    known = [name for name, one in all_measures().items() if one.has_interval]
    found = find(measure, among=[DISTANCE, *known])
    refuse_without_interval(found)
    return found


def chosen_method(rows: Rows, method: Method) -> str:
    """Return the method, "auto" being without replicates where rows are many."""
    if method != "auto":
        return method
    return "resampling" if units_of(rows).n_rows < MANY else "cross_fit"


def refuse_without_interval(measure: Measure[Any]) -> None:
    """Raise unless the measure has an interval, and say why it has none."""
    if not measure.has_interval:
        why = measure.facts.no_interval
        raise InvalidInput(
            argument="measure",
            value=measure.name,
            reason=f"it has no valid confidence interval, since {why.reason}",
            remedy=why.remedy,
        )
