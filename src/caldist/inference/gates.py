"""Gates: whether a model may pass, must fail, or was not shown enough rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from numpy.typing import ArrayLike

from caldist._util.numbers import least, most
from caldist._util.results import Result
from caldist.data import validate
from caldist.data.joint import Joint
from caldist.data.rows import Rows
from caldist.errors import answering
from caldist.inference.folds import ordered_units
from caldist.inference.intervals import refuse_without_interval
from caldist.inference.limits import Limits, warn_if_few
from caldist.inference.recipes import limits_of
from caldist.inference.resampling import Resampler
from caldist.inference.sample import units_of
from caldist.measures.base import Measure
from caldist.measures.lower_distance import lower_distance
from caldist.measures.registry import all_measures, find

Outcome = Literal["pass", "fail", "undecided"]

DISTANCE = "distance to calibration"
_SEED = 0  # of the one dealing of rows into folds


@dataclass(frozen=True)
class Gate(Result):
    """What :func:`caldist.gate` decided.

    Attributes
    ----------
    outcome
        ``"pass"`` if the population's value is below ``at_most``, ``"fail"`` if it is above, each
        but for a probability ``error``, and ``"undecided"`` if there are not enough rows to tell.
    lower, upper
        The one-sided limits that were compared: each is on the wrong side of the population's value
        with probability ``error``.
    at_most
        What was asked for.
    measure
        The name of the measure, or "distance to calibration".
    error
        The probability of each wrong decision.
    """

    outcome: Outcome
    lower: float
    upper: float
    at_most: float
    measure: str
    error: float

    def __str__(self) -> str:
        level = f"with {100 * (1 - self.error):g}% confidence"
        if self.outcome == "pass":
            return (
                f"pass: {level} the {self.measure} of the population is at most "
                f"{most(self.upper)}, below {self.at_most:g}"
            )
        if self.outcome == "fail":
            return (
                f"fail: {level} the {self.measure} of the population is at least "
                f"{least(self.lower)}, above {self.at_most:g}"
            )
        return (
            f"undecided: not enough rows to tell whether the {self.measure} of the population is "
            f"below {self.at_most:g}; {level} each, it is at least {least(self.lower)} and at most "
            f"{most(self.upper)}"
        )


@answering
def gate(
    y_true: ArrayLike | Joint,
    y_prob: ArrayLike | None = None,
    *,
    at_most: float,
    measure: str | Measure[Any] | None = None,
    error: float = 0.05,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    clusters: ArrayLike | None = None,
) -> Gate:
    r"""Decide whether the population's distance to calibration is at most a limit.

    **What it means.** "fail" says that the population is farther from calibrated than ``at_most``,
    "pass" that it is nearer; either is wrong with probability ``error`` at most, for large samples.
    Neither is possible with few rows: that is "undecided", and no fault of the model. The value on
    the sample decides nothing by itself: of a calibrated model it exceeds a small limit half of the
    time.

    **How it is made.** From one-sided limits. The lower one evaluates witnesses from one fifth of
    the rows on the other four; the upper one is the cost of the map to the mean labels of cells,
    for the distance itself, or the measure's value and the error of one mean. See
    :func:`caldist.distance_bracket` and ``method="split"`` of
    :func:`caldist.confidence_interval`. Rows are dealt into folds by a fixed stream, whatever their
    order: the same rows always give the same result.

    **What it estimates.** The population. The default speaks of the distance to calibration itself,
    whatever is behind the predictions.

    **Cost.** A sort and some ten times the measure; there are no replicates.

    Parameters
    ----------
    y_true : array-like of 0 and 1, or Joint
        A joint stands for labels, predictions and weights at once. Limits of rounded predictions
        are moved outwards.
    y_prob : array-like in [0, 1]
        The predicted probability of label 1.
    at_most : float
        The largest value that may pass: at least 0 and below 1, 0.05 for 5%. Nothing passes 0;
        what fails it is significantly miscalibrated.
    measure : measure or its name, optional
        By default the distance to calibration; otherwise a measure that has a confidence interval.
    error : float
        The probability of each wrong decision, below one half.
    sample_weight : array-like, optional
    pos_label : optional
        The value of ``y_true`` that counts as label 1, where labels are not 0 and 1.
    clusters : array-like, optional
        The cluster of each row; see :func:`caldist.confidence_interval`.

    Returns
    -------
    Gate

    Warns
    -----
    UserWarning
        With fewer than ten rows of either label, or clusters that have one of it.

    See Also
    --------
    confidence_interval : both limits at once.
    calibration_test : with ``tolerance`` a p-value of "fail".

    Examples
    --------
    >>> import caldist
    >>> demo = caldist.datasets.load_demo()
    >>> y_true, y_prob = demo.y_true, demo.y_prob["logistic_regression"]
    >>> print(caldist.gate(y_true, y_prob, at_most=0.05))
    pass: with 95% confidence the distance to calibration of the population is ..., below 0.05
    >>> caldist.gate(y_true, y_prob, at_most=0.01).outcome
    'undecided'
    >>> caldist.gate(y_true, demo.y_prob["naive_Bayes"], at_most=0.05).outcome
    'fail'
    """
    error = validate.check_fraction("error", error)
    if error >= 0.5:
        message = f"error is {error!r}; it must be below 0.5, or limits would lie on wrong sides."
        raise ValueError(message)
    chosen = None
    if measure is not None:
        chosen = find(measure, among=[m.name for m in all_measures().values() if m.has_interval])
        refuse_without_interval(chosen)
    ceiling = 1.0 if chosen is None else chosen.facts.ceiling
    at_most = validate.check_limit("at_most", at_most, ceiling=ceiling, allow_zero=True)
    rows = Rows.of(
        y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label, clusters=clusters
    )
    warn_if_few(units_of(rows))
    return gate_of(rows, chosen, at_most, error)


def gate_of(rows: Rows, measure: Measure[Any] | None, at_most: float, error: float) -> Gate:
    """Decide about rows that were checked; ``measure`` is None for the distance itself."""
    limits = Limits(ordered_units(rows), 2 * error, Resampler.of(_SEED, n_resamples=1), "split")
    ceiling = 1.0
    if measure is None:
        _, lower, _ = limits_of(lower_distance, limits, rows.joint)
        upper = limits.distance(rows.joint)
    else:
        _, lower, upper = limits_of(measure, limits, rows.joint)
        ceiling = measure.facts.ceiling
    lower = min(max(0.0, lower), ceiling)
    upper = min(max(lower, upper), ceiling)
    outcome: Outcome = "undecided"
    if lower > at_most:
        outcome = "fail"
    elif upper < at_most:
        outcome = "pass"
    return Gate(
        outcome=outcome,
        lower=float(lower),
        upper=float(upper),
        at_most=at_most,
        measure=DISTANCE if measure is None else str(measure),
        error=error,
    )
