"""Gates: whether a model may pass, must fail, or was not shown enough rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NoReturn

from numpy.typing import ArrayLike

from caldist._util.numbers import least, most
from caldist._util.results import Result
from caldist.data import validate
from caldist.data.joint import Joint
from caldist.data.rows import Rows
from caldist.errors import InvalidInput, answering
from caldist.inference.folds import ordered_units
from caldist.inference.intervals import measure_asked_for
from caldist.inference.limits import Limits, warn_if_few
from caldist.inference.recipes import limits_of
from caldist.inference.resampling import Resampler
from caldist.inference.sample import units_of
from caldist.measures.base import Measure
from caldist.measures.certification import DISTANCE
from caldist.measures.lower_distance import lower_distance

Outcome = Literal["pass", "fail", "undecided"]

_SEED = 0  # of the one dealing of rows into folds


@dataclass(frozen=True)
class Gate(Result):
    """What :func:`caldist.gate` decided.

    Attributes
    ----------
    outcome
        ``"pass"`` if the population's value is below ``tolerance``, ``"fail"`` if it is above, each
        with one-sided confidence ``confidence_level``, and ``"undecided"`` if there are not enough
        rows to tell.
    lower, upper
        The one-sided limits that were compared: each is on the wrong side of the population's value
        with probability ``1 - confidence_level``.
    tolerance
        What was asked for.
    measure
        The name of the measure, "distance" for the distance to calibration.
    confidence_level
        One minus the probability of each wrong decision.
    """

    outcome: Outcome
    lower: float
    upper: float
    tolerance: float
    measure: str
    confidence_level: float

    def __bool__(self) -> NoReturn:
        """Refuse to be true or false: there are three outcomes."""
        message = "a Gate is neither true nor false: compare its outcome, gate.outcome == 'pass'."
        raise TypeError(message)

    def __str__(self) -> str:
        level = f"with {100 * self.confidence_level:g}% confidence"
        what = "distance to calibration" if self.measure == DISTANCE else self.measure
        if self.outcome == "pass":
            return (
                f"pass: {level} the {what} of the population is at most {most(self.upper)}, below "
                f"{self.tolerance:g}"
            )
        if self.outcome == "fail":
            return (
                f"fail: {level} the {what} of the population is at least {least(self.lower)}, "
                f"above {self.tolerance:g}"
            )
        return (
            f"undecided: not enough rows to tell whether the {what} of the population is below "
            f"{self.tolerance:g}; {level} each, it is at least {least(self.lower)} and at most "
            f"{most(self.upper)}"
        )


@answering
def gate(
    y_true: ArrayLike | Joint,
    y_prob: ArrayLike | None = None,
    *,
    tolerance: float,
    measure: str | Measure[Any] = DISTANCE,
    confidence_level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    clusters: ArrayLike | None = None,
) -> Gate:
    r"""Decide whether the population's distance to calibration is below a tolerance.

    **What it means.** "fail" says that the population is farther from calibrated than
    ``tolerance``, "pass" that it is nearer; either is wrong with probability
    ``1 - confidence_level`` at most, for large samples. Neither is possible with few rows: that is
    "undecided", and no fault of the model. The value on the sample decides nothing by itself: of a
    calibrated model it exceeds a small tolerance half of the time.

    **How it is made.** From one-sided limits. The lower one evaluates witnesses from one fifth of
    the rows on the other four; the upper one is the cost of the map to the mean labels of cells,
    for the distance itself, or the measure's value and the error of one mean. They are those of
    ``method="cross_fit"`` of :func:`caldist.confidence_interval`. Rows are dealt into folds by a
    fixed stream, whatever their order: the same rows always give the same result.

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
    tolerance : float
        The largest value that may pass: at least 0 and below 1, 0.05 for 5%. Nothing passes 0;
        what fails it is significantly miscalibrated.
    measure : measure or its name
        "distance", the distance to calibration itself, or a measure that has a confidence interval.
    confidence_level : float
        That of each decision, above one half. It is one-sided: with 0.95 a "pass" and a "fail" are
        each wrong with probability 5%, and both limits are the ends of a 90% interval.
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
    >>> print(caldist.gate(y_true, y_prob, tolerance=0.05))
    pass: with 95% confidence the distance to calibration of the population is ..., below 0.05
    >>> caldist.gate(y_true, y_prob, tolerance=0.01).outcome
    'undecided'
    >>> caldist.gate(y_true, demo.y_prob["naive_Bayes"], tolerance=0.05).outcome
    'fail'
    """
    confidence_level = validate.check_fraction("confidence_level", confidence_level)
    if confidence_level <= 0.5:
        raise InvalidInput(
            argument="confidence_level",
            value=confidence_level,
            reason="it must be above 0.5, or one-sided limits would lie on the wrong sides",
        )
    chosen = measure_asked_for(measure)
    ceiling = 1.0 if chosen is None else chosen.facts.ceiling
    tolerance = validate.check_limit("tolerance", tolerance, ceiling=ceiling, allow_zero=True)
    rows = Rows.of(
        y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label, clusters=clusters
    )
    warn_if_few(units_of(rows))
    return gate_of(rows, chosen, tolerance, confidence_level)


def gate_of(
    rows: Rows, measure: Measure[Any] | None, tolerance: float, confidence_level: float
) -> Gate:
    """Decide about rows that were checked; ``measure`` is None for the distance itself."""
    resampler = Resampler.of(_SEED, n_resamples=1)
    limits = Limits(ordered_units(rows), 2 * (1 - confidence_level), resampler, "cross_fit")
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
    if lower > tolerance:
        outcome = "fail"
    elif upper < tolerance:
        outcome = "pass"
    return Gate(
        outcome=outcome,
        lower=float(lower),
        upper=float(upper),
        tolerance=tolerance,
        measure=DISTANCE if measure is None else str(measure),
        confidence_level=confidence_level,
    )
