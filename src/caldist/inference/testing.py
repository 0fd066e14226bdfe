"""Tests of calibration: exact for perfect calibration, and for a distance within a tolerance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caldist import _validate
from caldist.data.joint import Joint
from caldist.inference._limits import FLIPS, LABELS, distance_replicates, warn_if_few
from caldist.inference._norms import make_norm
from caldist.inference._null import (
    CLUSTERED,
    NAMES,
    Statistic,
    make_statistic,
    null_ranks,
    sums,
)
from caldist.inference._resampling import Replicate, Resampler, Sample
from caldist.measures.lower_distance import lower_distance_of

__all__ = ["TestResult", "calibration_test"]

Vector = NDArray[np.float64]

# One that sees a shift of the mean, one that sees bumps and waves, one that sees over-confidence.
_AUTO = ("smooth_ce", "random_interval_ce", "spiegelhalter")
_WITH_TOLERANCE = ("lower_distance", "smooth_ce", "kernel_ce", "random_interval_ce")


@dataclass(frozen=True)
class TestResult:
    """The result of :func:`caldist.calibration_test`.

    Attributes
    ----------
    statistic
        The measure of the data; for "auto" the least p-value of the components.
    pvalue
        The probability of a statistic at least as large if the hypothesis holds.
    measure
        The name of the statistic.
    n_resamples
        The number of replicates.
    asymptotic_pvalue
        What the statistic's limit law gives; None where none is known or rows are clustered.
    components
        For "auto", the results of the combined tests, each as if it had been the only one.
    tolerance
        The distance allowed by the hypothesis; None for perfect calibration.
    """

    __test__: ClassVar[bool] = False  # not a test case, whatever its name makes pytest think

    statistic: float
    pvalue: float
    measure: str
    n_resamples: int
    asymptotic_pvalue: float | None = None
    components: tuple[TestResult, ...] = ()
    tolerance: float | None = None


def calibration_test(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    measure: str = "auto",
    n_resamples: int = 999,
    tolerance: float | None = None,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    rng: _validate.Rng = None,
    progress: bool = False,
) -> TestResult:
    r"""Test whether predictions are perfectly calibrated, or within a tolerance of it.

    The predictions stay, labels y* are drawn with the predicted probabilities, B times, and

    .. math:: p = \frac{1 + \#\{T^* \ge T\}}{B + 1}

    for the statistic T of the data. If the predictions are perfectly calibrated, p ≤ α happens with
    probability at most α: in every sample size, for every statistic, with ties and with weights
    that do not depend on the labels.

    **What it means.** A small p-value says that perfectly calibrated predictions would hardly show
    such labels. A large sample makes it small for a deviation that does not matter: then ask with
    ``tolerance``, or look at :func:`caldist.confidence_interval`. A large p-value does not prove
    calibration.

    **What it estimates.** The p-value speaks of the population that the labels come from;
    ``statistic`` is the sample's.

    **Which statistic.** "auto" takes the least p-value of three and calibrates it by the same
    draws, so the combination is exact too: ``smooth_ce`` sees a shift of the mean,
    ``random_interval_ce`` bumps and waves, ``spiegelhalter`` predictions that are too extreme or
    not extreme enough. Alone, ``smooth_ce``, ``kernel_ce`` and ``lower_distance`` mostly see the
    mean.

    **Clusters.** Rows of one patient or one game are not independent. With ``groups`` a replicate
    flips the sign of all residuals of a cluster together. That is exact where a cluster's residuals
    are as likely as their negatives, and otherwise right for many clusters: with k of them no
    p-value is below about 2/2^k. Do not use it for independent rows, where drawing labels is exact.

    **With a tolerance** the hypothesis is that the population's ``measure`` is at most ε; "auto"
    is then the lower distance to calibration, which no distance to calibration is below. With D*
    by how much noise can raise it, :math:`p = (1 + \#\{D^* \ge T - \varepsilon\})/(B + 1)`, the
    larger of two: noise by random signs of the rows and by labels drawn anew. So p ≤ α if and only
    if ε lies below the interval of :func:`caldist.confidence_interval` at level 1 - 2α. It is right
    for large samples, grows with ε, and is careful: at ε = 0 the exact test finds far more.
    Since smCE ≤ 2 ldCE, ``measure="smooth_ce"`` with 2ε tests the same; it is the weaker of the two
    but for deviations close to the noise.

    **Cost.** A sort, then O(n) for each replicate, without sorting, on all cores; memory O(n + B).
    Measures that are not a single pass cost B times what they cost once: ``lower_distance``,
    ``upper_distance``, ``interval_ce`` and ``kernel_smoothed_ece`` take minutes where others take a
    second.

    Parameters
    ----------
    y_true : array-like of 0 and 1
    y_prob : array-like in [0, 1]
        The predicted probability of label 1.
    measure : str
        "auto"; any name that :func:`caldist.evaluate` knows, with its default options;
        "spiegelhalter" (two-sided) or "hosmer_lemeshow" (ten groups of equal mass). All but
        Spiegelhalter's z reject when large, ``brier_score`` too, which therefore overlooks
        predictions that are not extreme enough.
    n_resamples : int
        B above. The p-value is a multiple of 1/(B + 1), for "auto" often at least three of them.
    tolerance : float, optional
        ε above. For "auto", ``lower_distance``, ``smooth_ce``, ``kernel_ce`` and
        ``random_interval_ce``.
    sample_weight : array-like, optional
        Weights must not depend on the labels.
    groups : array-like, optional
        The cluster of each row.
    rng : int, numpy.random.Generator or None
        The same seed gives the same result, whatever the number of cores.
    progress : bool
        Show a progress bar after two seconds.

    Returns
    -------
    TestResult
        ``statistic``, ``pvalue``, ``measure``, ``n_resamples``, ``asymptotic_pvalue``,
        ``components`` and ``tolerance``. The asymptotic p-value comes from the largest absolute
        value of a Brownian motion for ``ecce_mad``, its range for ``ecce_range``, the normal law
        for ``spiegelhalter`` and the chi-squared law for ``hosmer_lemeshow``. The last has as many
        degrees of freedom as groups, for predictions made without these labels; subtract two if a
        logistic regression was fitted to these very rows.

    References
    ----------
    Spiegelhalter, "Probabilistic prediction in patient management and clinical trials", 1986.
    Hosmer and Lemeshow, "Goodness of fit tests for the multiple logistic regression model", 1980.
    Arrieta-Ibarra, Gujral, Tannen, Tygert and Xu, "Metrics of calibration for probabilistic
    predictions", 2022. Feller, "The asymptotic distribution of the range of sums of independent
    random variables", 1951.

    Examples
    --------
    >>> import caldist
    >>> y_true, y_prob = [0, 0, 1, 0, 1] * 10, [0.9, 0.7, 0.8, 0.9, 0.6] * 10
    >>> result = caldist.calibration_test(y_true, y_prob, rng=0)
    >>> result.pvalue < 0.01
    True
    >>> [part.measure for part in result.components]
    ['smooth_ce', 'random_interval_ce', 'spiegelhalter']
    >>> caldist.calibration_test(y_true, y_prob, tolerance=0.5, rng=0).pvalue
    1.0
    """
    _check_measure(measure, tolerance=tolerance, clustered=groups is not None)
    if tolerance is not None:
        tolerance = _validate.check_nonnegative("tolerance", tolerance)
    resampler = Resampler.of(rng, n_resamples=n_resamples, progress=progress)
    sample = Sample.from_arrays(y_true, y_prob, sample_weight=sample_weight, groups=groups)
    if tolerance is not None:
        warn_if_few(sample)
        return _tolerance_test(sample, measure, tolerance, resampler)
    names = _AUTO if measure == "auto" else (measure,)
    statistics = [make_statistic(name, sample) for name in names]
    values, rank = null_ranks(sample, statistics, resampler)
    results = tuple(
        _result(name, part, float(value), int(count), resampler)
        for name, part, value, count in zip(names, statistics, values, rank[0], strict=True)
    )
    if measure != "auto":
        return results[0]
    best = rank.min(axis=1)
    draws = resampler.n_resamples + 1
    return TestResult(
        statistic=int(best[0]) / draws,
        pvalue=int(np.count_nonzero(best <= best[0])) / draws,
        measure="auto",
        n_resamples=resampler.n_resamples,
        components=results,
    )


def _result(
    name: str, statistic: Statistic, value: float, rank: int, resampler: Resampler
) -> TestResult:
    return TestResult(
        statistic=value,
        pvalue=rank / (resampler.n_resamples + 1),
        measure=name,
        n_resamples=resampler.n_resamples,
        asymptotic_pvalue=None if statistic.tail is None else statistic.tail(value),
    )


def _check_measure(measure: object, *, tolerance: object, clustered: bool) -> None:
    _validate.check_choice("measure", measure, ("auto", *NAMES))
    if tolerance is not None and measure not in {"auto", *_WITH_TOLERANCE}:
        message = (
            f"measure is {measure!r}, which has no tolerance to be tested against: use "
            f"{', '.join(_WITH_TOLERANCE)}, or leave tolerance out."
        )
        raise ValueError(message)
    if tolerance is None and clustered and measure not in {"auto", *CLUSTERED}:
        message = (
            f"measure is {measure!r}, which needs labels, but with groups the residuals change "
            f"sign: use auto, {', '.join(CLUSTERED)}, or leave groups out."
        )
        raise ValueError(message)


def _tolerance_test(
    sample: Sample, measure: str, tolerance: float, resampler: Resampler
) -> TestResult:
    """Invert the lower end of the measure's confidence interval, with the same replicates."""
    name = "lower_distance" if measure == "auto" else measure
    noise: dict[int, Replicate]
    if name == "lower_distance":
        value = lower_distance_of(_joint(sample))
        noise = distance_replicates(sample)
    else:
        norm = make_norm(name, sample.prediction)
        value = norm(sample.residual)
        noise = {FLIPS: lambda rng: norm.unless_below(sample.flip(rng), value - tolerance)}
        if sample.group is None:  # labels drawn independently say nothing about clusters
            noise[LABELS] = lambda rng: norm.unless_below(sample.draw(rng), value - tolerance)
    rank = 1 + max(
        np.count_nonzero(
            resampler.run(replicate, family=family, size=sample.n_rows) >= value - tolerance
        )
        for family, replicate in noise.items()
    )
    return TestResult(
        statistic=value,
        pvalue=int(rank) / (resampler.n_resamples + 1),
        measure=name,
        n_resamples=resampler.n_resamples,
        tolerance=tolerance,
    )


def _joint(sample: Sample) -> Joint:
    size = sample.prediction.size
    place = sample.place + size * sample.label
    masses = sums(place, sample.count * sample.share, 2 * size)
    return Joint(sample.prediction, masses[:size], masses[size:])
