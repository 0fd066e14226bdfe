"""Confidence intervals for the population's value of a measure."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from caldist import _validate
from caldist.data.joint import Joint
from caldist.inference import _limits
from caldist.inference._limits import Dyadic, Limits, warn_if_few
from caldist.inference._norms import NORMS, make_norm
from caldist.inference._resampling import Resampler, Sample
from caldist.measures._rounding import random_interval_bound, random_interval_range
from caldist.measures.brier_score import brier_score_of
from caldist.measures.interval_ce import interval_ce_of
from caldist.measures.lower_distance import TOLERANCE, certify_lower, lower_distance_of
from caldist.measures.random_interval_ce import DEFAULT_WIDTH
from caldist.measures.registry import MEASURES
from caldist.measures.surrogate_interval_ce import surrogate_interval_ce_of

__all__ = ["Interval", "confidence_interval", "confidence_interval_of"]

Method = Literal["auto", "resampling", "finite_sample"]

_SMEARED = (
    "a population whose every prediction is split into many close ones, with their labels frozen, "
    "gives the same samples but another value, so no interval from a sample is valid. Use "
    "caldist.distance_bracket(..., confidence_level=...) or measure='smooth_ce'."
)
_REFUSED = {
    "ece": _SMEARED,
    "upper_distance": _SMEARED,
    "true_distance": (
        "the distance depends on the domain, of which a sample of predictions and labels says "
        "nothing. Use caldist.distance_bracket(..., confidence_level=...), which bounds it from "
        "both sides."
    ),
    "binned_ece": (
        "it jumps when predictions cross an edge and keeps an upward bias that depends on the "
        "bins, so its interval would speak of the bins and not of the predictions. Use "
        "measure='random_interval_ce', which averages over all places of the bins."
    ),
}
_OTHERS = (
    "no recipe with proved or measured coverage at perfect calibration is known for it. Use "
    "measure='smooth_ce', or caldist.calibration_test for a test."
)
_WITHOUT_INTERVAL = {
    **dict.fromkeys(
        (
            "averaged_two_bin_ce",
            "corp",
            "debiased_ece",
            "ecce_mad",
            "ecce_range",
            "kernel_smoothed_ece",
            "ks_error",
            "log_loss",
            "mmce",
            "normalized_cross_entropy",
            "skce",
            "soft_binned_ece",
            "sweep_ece",
            "t_cal",
        ),
        _OTHERS,
    ),
    **_REFUSED,
}
_WITH_INTERVAL = (
    *NORMS,
    "surrogate_interval_ce",
    "lower_distance",
    "interval_ce",
    "brier_score",
)


@dataclass(frozen=True)
class Interval:
    """A measure's value on the sample and a confidence interval for the population's.

    Attributes
    ----------
    value
        What the measure's own function returns. It is biased upwards, so near perfect calibration
        the interval lies mostly below it; that of ``surrogate_interval_ce`` and ``interval_ce`` may
        lie outside of the interval.
    low, high
        The ends of the interval.
    confidence_level
        The probability with which such an interval holds the population's value.
    method
        ``"resampling"``, ``"finite_sample"``, or ``"normal"`` for the Brier score, which is a mean.
    n_resamples
        The replicates that were made; 0 where none are needed.
    """

    value: float
    low: float
    high: float
    confidence_level: float
    method: str
    n_resamples: int

    def __str__(self) -> str:
        return (
            f"{self.value:.4g}, {100 * self.confidence_level:g}% confidence interval "
            f"{self.low:.4g} to {self.high:.4g}"
        )


def confidence_interval(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    measure: str = "smooth_ce",
    confidence_level: float = 0.95,
    method: Method = "auto",
    n_resamples: int = 999,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    rng: _validate.Rng = None,
    progress: bool = False,
    **measure_options: Any,
) -> Interval:
    r"""Return a confidence interval for the population's value of a measure.

    **What it means.** If rows are drawn again and again from one population, at least about the
    given share of the intervals hold the population's value, perfectly calibrated populations
    included. There the percentile bootstrap's interval never does: the value on a sample is above
    0, and those on its resamples are higher still.

    **How it is made.** The lower end takes off the value what the measure, a norm of the residuals,
    makes of noise alone: the larger one of two quantiles, over random signs of the residuals and
    over labels drawn from the predictions. The upper end adds the normal error of one mean, that
    with the function which attains the norm, and a term for rare labels. The lower distance has
    a closed form for what a replicate can change; the interval of ``interval_ce`` reaches from the
    lower end of ``lower_distance`` to the upper end of ``surrogate_interval_ce``; the Brier score
    is a mean. ``"finite_sample"`` uses inequalities proved for every n and every population; its
    intervals are three to ten times as wide. For ``weighted_ce`` they suppose that no function is
    larger anywhere than it is at these predictions.

    **What it estimates.** The population's value. ``value`` itself is the sample's.

    **Cost.** A sort, and two passes over the rows for each replicate, on all cores. Memory is
    O(n + n_resamples).

    Parameters
    ----------
    y_true : array-like of 0 and 1
    y_prob : array-like in [0, 1]
        The predicted probability of label 1.
    measure : str
        ``"smooth_ce"``, ``"kernel_ce"`` (Laplace or Gaussian kernel), ``"random_interval_ce"``,
        ``"weighted_ce"`` (with ``functions``), ``"surrogate_interval_ce"``, ``"lower_distance"``,
        ``"interval_ce"`` or ``"brier_score"``. The ECE, binned ECE and upper distance have no valid
        interval.
    confidence_level : float
        Between 0 and 1.
    method : "auto", "resampling" or "finite_sample"
        "auto" is resampling.
    n_resamples : int
        The number of replicates: at least 2/(1 - confidence_level) - 1.
    sample_weight : array-like, optional
        Weights multiply the residuals and are taken as given, not as random.
    groups : array-like, optional
        The cluster of each row, by numbers, text or other hashable labels. Rows of one cluster, of
        one patient or one game, may depend on each other in any way; clusters are independent.
    rng : int, numpy.random.Generator or None
        The same seed gives the same interval, whatever the number of cores.
    progress : bool
        Show a progress bar after two seconds.
    **measure_options
        Options of the measure's own function: ``kernel`` and ``bandwidth``, ``width``,
        ``functions``, or ``tol``.

    Returns
    -------
    Interval

    Warns
    -----
    UserWarning
        With fewer than ten rows of either label, or clusters that have one of it; not with
        ``method="finite_sample"``, which holds for any number.

    Examples
    --------
    >>> import numpy as np, caldist
    >>> from caldist.inference import confidence_interval
    >>> y_prob = np.linspace(0.01, 0.99, 500)
    >>> y_true = np.arange(500) * 7 % 500 < 500 * y_prob  # calibrated
    >>> interval = confidence_interval(y_true, y_prob, rng=0)
    >>> interval.low <= 0 < interval.high < 0.05
    True
    >>> shifted = confidence_interval(y_true, y_prob**2, rng=0)
    >>> shifted.low > 0.1, shifted.value == caldist.smooth_ce(y_true, y_prob**2)
    (True, True)
    """
    _check_measure(measure)
    joint = Joint.from_arrays(y_true, y_prob, sample_weight=sample_weight)
    sample = Sample.from_arrays(y_true, y_prob, sample_weight=sample_weight, groups=groups)
    return _interval(
        joint,
        sample,
        measure,
        confidence_level,
        method,
        n_resamples,
        rng,
        progress,
        measure_options,
    )


def confidence_interval_of(
    joint: Joint,
    *,
    measure: str = "smooth_ce",
    confidence_level: float = 0.95,
    method: Method = "auto",
    n_resamples: int = 999,
    rng: _validate.Rng = None,
    progress: bool = False,
    **measure_options: Any,
) -> Interval:
    """Return the interval of :func:`confidence_interval` for a summary whose masses count rows.

    A replicate costs one pass over the distinct predictions, however many rows they stand for. If
    the predictions were rounded, both ends are moved outwards by the certified effect of that, and
    ``value`` is the one of :func:`caldist.evaluate`.

    Examples
    --------
    >>> import caldist
    >>> from caldist.inference import confidence_interval_of
    >>> joint = caldist.Joint.from_masses([0.2, 0.8], [800, 200], [200, 800])
    >>> interval = confidence_interval_of(joint, rng=0)
    >>> interval.value < 1e-9, interval.low, 0 < interval.high < 0.03
    (True, 0.0, True)
    """
    _check_measure(measure)
    if not isinstance(joint, Joint):
        message = f"joint is {_validate.show(joint)}; it must be a caldist.Joint."
        raise TypeError(message)
    rows = joint.total
    counts = all(np.array_equal(mass, np.floor(mass)) for mass in (joint.mass0, joint.mass1))
    weighted = joint.grid is not None and not joint.grid.is_integer
    if weighted or not counts or joint.n_rows not in {None, rows}:
        message = (
            "the masses of joint are weights, not numbers of rows, and do not say how many rows "
            "there are: pass the rows and sample_weight to caldist.confidence_interval."
        )
        raise ValueError(message)
    sample = Sample.from_joint(joint)
    return _interval(
        joint,
        sample,
        measure,
        confidence_level,
        method,
        n_resamples,
        rng,
        progress,
        measure_options,
    )


def _interval(
    joint: Joint,
    sample: Sample,
    measure: str,
    confidence_level: float,
    method: str,
    n_resamples: int,
    rng: _validate.Rng,
    progress: bool,  # noqa: FBT001 -- internal
    options: dict[str, Any],
) -> Interval:
    confidence_level = _validate.check_fraction("confidence_level", confidence_level)
    _validate.check_choice("method", method, ("auto", "resampling", "finite_sample"))
    resampler = Resampler.of(rng, n_resamples=n_resamples, progress=progress)
    finite = method == "finite_sample"
    if not finite:
        warn_if_few(sample, stacklevel=4)
    limits = Limits(sample, 1 - confidence_level, None if finite else resampler)
    value, low, high = _ends(joint, limits, measure, options)
    ceiling = np.inf if measure == "weighted_ce" else 1.0
    normal = measure == "brier_score" and not finite
    return Interval(
        value=value,
        low=float(min(max(low, 0.0), ceiling)),
        high=float(min(high, ceiling)),
        confidence_level=confidence_level,
        method="finite_sample" if finite else "normal" if normal else "resampling",
        n_resamples=0 if finite or normal else resampler.n_resamples,
    )


def _ends(
    joint: Joint, limits: Limits, measure: str, options: dict[str, Any]
) -> tuple[float, float, float]:
    """Return the value and the ends of the interval."""
    if measure in NORMS:
        norm = make_norm(measure, limits.sample.prediction, **options)
        value, low, high = _limits.norm_limits(limits, norm)
        return _rounded(joint, measure, value, low, high, options)
    tol = options.pop("tol", TOLERANCE) if measure == "lower_distance" else TOLERANCE
    if options:
        name = next(iter(options))
        message = f"{name} is not an option of {measure} here."
        raise TypeError(message)
    if measure == "brier_score":
        value = brier_score_of(joint)
        return _rounded(joint, measure, value, *_limits.brier_limits(limits, value), options)
    tol = _validate.check_positive("tol", tol)
    if measure == "lower_distance":
        value = lower_distance_of(joint, tol=tol)
        low, high = _limits.distance_lower(limits, value), _limits.distance_upper(limits, value)
        return _rounded(joint, measure, value, low, high + tol, options)
    dyadic = Dyadic(limits, partial(random_interval_bound, joint))
    high = dyadic.upper(cost=1.0)
    if measure == "surrogate_interval_ce":
        value = surrogate_interval_ce_of(joint)
        value, _, _ = _rounded(joint, measure, value, 0.0, 0.0, options)
        return value, dyadic.lower(cost=1.0), high
    distance = certify_lower(joint, tol=tol).lower
    low = _limits.distance_lower(limits, distance)
    _, low, _ = _rounded(joint, "lower_distance", distance, low, 0.0, options)
    return interval_ce_of(joint), low, high


def _rounded(
    joint: Joint, measure: str, value: float, low: float, high: float, options: dict[str, Any]
) -> tuple[float, float, float]:
    """Move the ends outwards by what rounded predictions may have done to the value."""
    if joint.radius == 0:
        return value, low, high
    if measure == "random_interval_ce":
        least, most = random_interval_range(joint, options.get("width", DEFAULT_WIDTH))
    else:
        rounding = MEASURES[measure].rounding if measure in MEASURES else None
        if options or rounding is None:
            shown = "".join(f", {name}=…" for name in options)
            message = (
                f"the predictions of joint are rounded, and what that does to measure={measure!r}"
                f"{shown} is not bounded: use measure='smooth_ce', or a joint of exact predictions."
            )
            raise ValueError(message)
        least, most = rounding(joint, value)
    # The value itself may lie outside of what is certain; caldist.evaluate moves it likewise.
    return min(max(value, least), most), low - value + least, high - value + most


def _check_measure(measure: object) -> None:
    """Raise unless the measure has an interval, and say why it has none."""
    if isinstance(measure, str) and measure in _WITHOUT_INTERVAL:
        message = (
            f"measure is {measure!r}, which has no valid confidence interval: "
            f"{_WITHOUT_INTERVAL[measure]}"
        )
        raise ValueError(message)
    _validate.check_choice("measure", measure, _WITH_INTERVAL)
