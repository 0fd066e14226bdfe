"""The bracket of the distance to calibration, of a sample or of the population behind it."""

from __future__ import annotations

from dataclasses import dataclass

from numpy.typing import ArrayLike

from caldist import _validate
from caldist.data.joint import Joint
from caldist.inference import _limits
from caldist.inference._limits import Dyadic, Limits, warn_if_few
from caldist.inference._resampling import Resampler, Sample
from caldist.measures.certification import DistanceBracket, sample_bracket
from caldist.measures.lower_distance import TOLERANCE, certify_lower

__all__ = ["PopulationBracket", "distance_bracket"]


@dataclass(frozen=True)
class PopulationBracket(DistanceBracket):
    """Bounds on the population's distance to calibration that hold with a confidence level."""

    confidence_level: float

    def __str__(self) -> str:
        return (
            f"With {100 * self.confidence_level:g}% confidence, the distance to calibration of the "
            f"population is at least {self.lower:.4g} and at most {self.upper:.4g}, whatever is "
            "behind the predictions."
        )


def distance_bracket(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    tol: float = TOLERANCE,
    sample_weight: ArrayLike | None = None,
    confidence_level: float | None = None,
    n_resamples: int = 999,
    groups: ArrayLike | None = None,
    rng: _validate.Rng = None,
) -> DistanceBracket:
    r"""Return bounds on the distance to calibration, knowing predictions and labels only.

    **What it means.** Without a confidence level: every domain and predictor with these predictions
    and labels has a true distance to calibration between ``lower`` and ``upper``, and without
    knowing the domain no smaller interval is certain, up to the tolerance of the lower end and the
    optimality of the upper one.

    **What it estimates.** Without a confidence level nothing: both ends speak of the rows that are
    given. With one they speak of the population the rows come from, and hold together with that
    probability: at least the lower limit of the lower distance, at most the least
    :math:`\mathrm{RintCE}(2^{-k}) + 2^{-k}/2` and its error. Half a bin's width is enough,
    since moving predictions to the mean label of their bin moves them by half of it on average at
    most.

    **Cost.** As of :func:`caldist.lower_distance` and :func:`caldist.upper_distance`; with a
    confidence level a pass over the rows for each replicate instead of the latter.

    Parameters
    ----------
    y_true : array-like of 0 and 1
    y_prob : array-like in [0, 1]
        The predicted probability of label 1.
    tol : float
        How precise the lower end shall be.
    sample_weight : array-like, optional
    confidence_level : float, optional
        Speak of the population, with this confidence.
    n_resamples : int
        Only with a confidence level: the number of replicates.
    groups : array-like, optional
        Only with a confidence level: the cluster of each row; see
        :func:`caldist.confidence_interval`.
    rng : int, numpy.random.Generator or None
        Only with a confidence level.

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
    >>> import numpy as np
    >>> y_prob = np.linspace(0.01, 0.99, 500)
    >>> y_true = np.arange(500) * 7 % 500 < 500 * np.sqrt(y_prob)
    >>> print(caldist.distance_bracket(y_true, y_prob, confidence_level=0.95, rng=0))
    With 95% confidence, the distance ... is at least 0.1... and at most 0.2..., whatever is ...
    """
    tol = _validate.check_positive("tol", tol)
    joint = Joint.from_arrays(y_true, y_prob, sample_weight=sample_weight)
    if confidence_level is None:
        if groups is not None:
            message = "groups only matters for the population: give confidence_level too."
            raise ValueError(message)
        return sample_bracket(joint, tol=tol)
    level = _validate.check_fraction("confidence_level", confidence_level)
    resampler = Resampler.of(rng, n_resamples=n_resamples)
    sample = Sample.from_arrays(y_true, y_prob, sample_weight=sample_weight, groups=groups)
    warn_if_few(sample)
    limits = Limits(sample, 1 - level, resampler)
    distance = certify_lower(joint, tol=tol).lower
    upper = min(1.0, Dyadic(limits, lambda _width: 0.0).upper(cost=0.5))
    return PopulationBracket(
        lower=min(max(0.0, _limits.distance_lower(limits, distance)), upper),
        upper=upper,
        lower_measure="lower_distance",
        upper_measure="random_interval_ce",
        confidence_level=level,
    )
