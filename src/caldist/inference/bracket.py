"""The bracket of the distance to calibration, of a sample or of the population behind it."""

from __future__ import annotations

from dataclasses import dataclass

from numpy.typing import ArrayLike

from caldist._util.numbers import least, most
from caldist.data import validate
from caldist.data.joint import Joint
from caldist.data.rows import Rows
from caldist.errors import answering
from caldist.inference.intervals import chosen_method
from caldist.inference.limits import Limits, warn_if_few
from caldist.inference.recipes import limits_of
from caldist.inference.resampling import Resampler
from caldist.inference.sample import units_of
from caldist.measures.certification import DistanceBracket, sample_bracket
from caldist.measures.lower_distance import TOLERANCE, lower_distance
from caldist.measures.upper_distance import upper_distance


@dataclass(frozen=True)
class PopulationBracket(DistanceBracket):
    """Bounds on the population's distance to calibration that hold with a confidence level."""

    confidence_level: float

    def __str__(self) -> str:
        return (
            f"With {100 * self.confidence_level:g}% confidence, the distance to calibration of the "
            f"population is at least {least(self.lower)} and at most {most(self.upper)}, whatever "
            f"is behind the predictions.{self._rounded}"
        )


@answering
def distance_bracket(
    y_true: ArrayLike | Joint,
    y_prob: ArrayLike | None = None,
    *,
    tol: float = TOLERANCE,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    confidence_level: float | None = None,
    n_resamples: int = 999,
    clusters: ArrayLike | None = None,
    rng: validate.Rng = None,
    progress: bool = False,
) -> DistanceBracket:
    r"""Return bounds on the distance to calibration, knowing predictions and labels only.

    **What it means.** Without a confidence level: every domain and predictor with these predictions
    and labels has a true distance to calibration between ``lower`` and ``upper``, and without
    knowing the domain no smaller interval is certain, up to the tolerance of the lower end and the
    optimality of the upper one.

    **What it estimates.** Without a confidence level nothing: both ends speak of the rows that are
    given. With one they speak of the population the rows come from, and hold together with that
    probability. The lower end is the lower limit of the lower distance, see
    :func:`caldist.confidence_interval`. The upper end is the cost of a map that is exactly
    calibrated: that of predictions to the mean label of their cell,
    :math:`\sum_c E[|v - \mu_c|; c]`, and the error of this one mean. Cells are about three
    standard errors of their mean label wide, made from the predictions alone; or neighbouring ones
    are merged as is best on two fifths of the rows and paid for on the others, if that is less. A
    row has no part in the mean label that it is compared with.

    **Cost.** As of :func:`caldist.lower_distance` and :func:`caldist.upper_distance`; with a
    confidence level ten times the former on a fifth of the rows instead of the latter, and below
    100,000 rows a pass over them for each replicate. From 100,000 different predictions on a grid
    of 2^16 cells is used if its effect is below a hundredth of the bracket's width.

    Parameters
    ----------
    y_true : array-like of 0 and 1, or Joint
        A joint stands for labels, predictions and weights at once.
    y_prob : array-like in [0, 1]
        The predicted probability of label 1.
    tol : float
        How precise the lower end shall be.
    sample_weight : array-like, optional
    pos_label : optional
        The value of ``y_true`` that counts as label 1, where labels are not 0 and 1.
    confidence_level : float, optional
        Speak of the population, with this confidence.
    n_resamples : int
        Only with a confidence level: the number of replicates, which 100,000 rows and more do
        without.
    clusters : array-like, optional
        Only with a confidence level: the cluster of each row; see
        :func:`caldist.confidence_interval`.
    rng : int, numpy.random.Generator or None
        Only with a confidence level.
    progress : bool
        Show a progress bar after two seconds.

    Returns
    -------
    DistanceBracket
        With a confidence level a ``PopulationBracket``, which adds ``confidence_level``.

    Examples
    --------
    >>> import caldist
    >>> bracket = caldist.distance_bracket([0, 1, 0, 1], [0.25, 0.5, 0.5, 0.75])
    >>> round(bracket.lower, 5), bracket.upper, bracket.upper_measure
    (0.04167, 0.125, 'upper_distance')
    >>> demo = caldist.datasets.load_demo()
    >>> y_true, y_prob = demo.y_true, demo.y_prob["random_forest"]
    >>> print(caldist.distance_bracket(y_true, y_prob, confidence_level=0.95, rng=0))
    With 95% confidence, the distance ... is at least 0.04... and at most 0.1..., whatever is ...
    """
    tol = validate.check_positive("tol", tol)
    resampler = Resampler.of(rng, n_resamples=n_resamples, progress=progress)
    if confidence_level is None and clusters is not None:
        message = "clusters only matters for the population: give confidence_level too."
        raise ValueError(message)
    rows = Rows.of(
        y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label, clusters=clusters
    )
    if confidence_level is None:
        return sample_bracket(rows.joint, tol=tol)
    level = validate.check_fraction("confidence_level", confidence_level)
    warn_if_few(units_of(rows))
    return population_bracket(rows, level, resampler, tol=tol)


def population_bracket(
    rows: Rows,
    confidence_level: float,
    resampler: Resampler,
    *,
    tol: float = TOLERANCE,
) -> PopulationBracket:
    """Return bounds for the population behind rows that were checked."""
    joint = rows.joint
    method = chosen_method(rows, "auto")
    limits = Limits.of(rows, 1 - confidence_level, resampler, method)
    _, lower, _ = limits_of(lower_distance.using(tol=tol), limits, joint)
    lower = min(1.0, max(0.0, lower))
    return PopulationBracket(
        lower=lower,
        upper=min(1.0, max(lower, limits.distance(joint))),
        lower_measure=lower_distance.name,
        upper_measure=upper_distance.name,
        confidence_level=confidence_level,
        rounding=joint.radius,
    )
