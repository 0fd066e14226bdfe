"""Which of several models is better calibrated: differences with intervals, on the same rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

from numpy.typing import ArrayLike

from caldist import _validate
from caldist._util.text_tables import aligned
from caldist.inference._norms import NORMS
from caldist.inference._paired import (
    PARTS,
    Differences,
    LossDifferences,
    NormDifferences,
    PairedRows,
)
from caldist.inference._resampling import Resampler, order_rank
from caldist.measures.registry import MEASURES

__all__ = ["Comparison", "Comparisons", "compare", "compare_all"]

ComparedMeasure = Literal[
    "smooth_ce", "kernel_ce", "random_interval_ce", "weighted_ce", "brier_score"
]

_NOT_A_NORM = (
    "is not a norm of the residuals, so the errors of two models do not cancel in a known way. Use "
    "'smooth_ce', which lies between half and twice the lower distance, or 'random_interval_ce'."
)
_NO_POPULATION = (
    "has no valid interval for the population, because samples cannot tell its values apart. Use "
    "'smooth_ce', or 'random_interval_ce' for the error of bins."
)
_UNKNOWN_LAW = (
    "has no interval that is known to hold near calibration. Use 'smooth_ce', 'kernel_ce' or "
    "'random_interval_ce'."
)
_REFUSED = {
    "lower_distance": _NOT_A_NORM,
    "surrogate_interval_ce": _NOT_A_NORM,
    "interval_ce": _NOT_A_NORM,
    "upper_distance": _NO_POPULATION,
    "ece": _NO_POPULATION,
    "binned_ece": _NO_POPULATION,
}


@dataclass(frozen=True)
class Comparison:
    """The difference of a measure between two models, with its uncertainty.

    Attributes
    ----------
    difference
        ``value_a - value_b``: negative where the first model is better.
    low, high
        The ends of the confidence interval for the population's difference.
    pvalue
        The smallest 1 - confidence_level at which 0 is outside the interval.
    value_a, value_b
        The measure of each model.
    measure, confidence_level
        What was asked for.
    n_resamples
        The resamples that were made; 0 for the Brier score.
    """

    difference: float
    low: float
    high: float
    pvalue: float
    value_a: float
    value_b: float
    measure: str
    confidence_level: float
    n_resamples: int


@dataclass(frozen=True)
class Comparisons:
    """All pairs of several models, in one statement that holds for all of them at once.

    Attributes
    ----------
    values
        The measure of each model, by name.
    pairs
        The :class:`Comparison` of each pair of names, in the order of the models.
    measure, confidence_level, n_resamples
        As in each pair. The confidence is that all the intervals hold together.
    """

    values: dict[str, float]
    pairs: dict[tuple[str, str], Comparison]
    measure: str
    confidence_level: float
    n_resamples: int

    @property
    def rows(self) -> list[dict[str, str | float]]:
        """One row for each pair, for a data frame."""
        return [
            {
                "model_a": a,
                "model_b": b,
                "difference": pair.difference,
                "low": pair.low,
                "high": pair.high,
                "pvalue": pair.pvalue,
            }
            for (a, b), pair in self.pairs.items()
        ]

    def __str__(self) -> str:
        """Return an aligned table."""
        level = f"{100 * self.confidence_level:g}%"
        lines: list[tuple[str, ...]] = [("", "", self.measure, "difference", "low", "high", "p")]
        lines += [(name, "", f"{value:.4f}", "", "", "", "") for name, value in self.values.items()]
        for (a, b), pair in self.pairs.items():
            numbers = (f"{x:+.4f}" for x in (pair.difference, pair.low, pair.high))
            lines.append((a, f"- {b}", "", *numbers, f"{pair.pvalue:.3g}"))
        return "\n".join(
            [*aligned(lines, left={0, 1}), f"All intervals hold together with {level} confidence."]
        )


def compare(
    y_true: ArrayLike,
    y_prob_a: ArrayLike,
    y_prob_b: ArrayLike,
    *,
    measure: ComparedMeasure = "smooth_ce",
    confidence_level: float = 0.95,
    n_resamples: int = 999,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    rng: _validate.Rng = None,
    progress: bool = False,
    **measure_options: Any,
) -> Comparison:
    r"""Compare the calibration of two models on the same rows.

    With :math:`T = \|c\|` the measure as a norm of the residual masses c, :math:`h = \sum_i
    \pm c^{(i)}` those of the rows with random signs, shared by both models, :math:`\hat w` the
    witness of a model and :math:`Q` the quantile of level :math:`1 - \delta/3` over the signs,

    .. math::

        \mathrm{low} &= T_a - T_b - Q(\|h_a\| - \langle \hat w_b, h_b \rangle) \\
        \mathrm{high} &= T_a - T_b + Q(\|h_b\| - \langle \hat w_a, h_a \rangle)

    cut off at :math:`\pm(\|c_a - c_b\| + z s + \ln(3/\delta)\,m/3)`, the upper end of the interval
    for :math:`\|c_a - c_b\|`, where s is the standard error of the mean of
    :math:`e_a w(v_a) - e_b w(v_b)`, w the witness of :math:`c_a - c_b`, and m the largest part of
    one row in that mean.

    **What it means.** With the given confidence the population's difference lies between ``low``
    and ``high``. It also holds where one model or both are calibrated, where bootstrapped
    differences miss the truth more often than not: noise makes a measure larger, never smaller,
    and more so for some predictions than for others. The Brier score is a mean and needs none of
    this: its interval is that of the paired differences of the losses.

    **What it estimates.** The population's difference.

    **Cost.** O(n log n) and then O(n) for each resample.

    Parameters
    ----------
    y_true : array-like of 0 and 1
    y_prob_a, y_prob_b : array-like in [0, 1]
        ``y_prob_a`` and ``y_prob_b`` are the predictions of the two models for the same rows.
    measure : "smooth_ce", "kernel_ce", "random_interval_ce", "weighted_ce" or "brier_score"
    confidence_level : float
    n_resamples : int
        How often signs are drawn; not used for the Brier score.
    sample_weight : array-like, optional
    groups : array-like, optional
        The cluster of each row, where rows are not independent. Signs flip for whole clusters.
    rng : int, numpy.random.Generator or None
        The same seed gives the same result on any number of cores; exchanging
        the models mirrors it.
    progress : bool
        Show a progress bar after two seconds.
    **measure_options
        ``measure_options`` are those of the measure: ``kernel``, ``bandwidth``, ``width``,
        ``functions``.

    Returns
    -------
    Comparison

    Warns
    -----
    UserWarning
        With fewer than ten rows of either label, or fewer than ten clusters.

    Examples
    --------
    >>> import caldist, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random(2000)
    >>> y_true = rng.random(2000) < truth
    >>> result = caldist.compare(y_true, truth, np.sqrt(truth), rng=1)
    >>> result.high < 0, result.pvalue <= 0.05
    (True, True)
    """
    comparison = _all_pairs(
        y_true, {"y_prob_a": y_prob_a, "y_prob_b": y_prob_b},
        measure=measure, confidence_level=confidence_level, n_resamples=n_resamples,
        sample_weight=sample_weight, groups=groups, rng=rng, progress=progress,
        options=measure_options,
    )  # fmt: skip
    return comparison[0, 1]


def compare_all(
    y_true: ArrayLike,
    y_prob: Mapping[str, ArrayLike],
    *,
    measure: ComparedMeasure = "smooth_ce",
    confidence_level: float = 0.95,
    n_resamples: int = 999,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    rng: _validate.Rng = None,
    progress: bool = False,
    **measure_options: Any,
) -> Comparisons:
    r"""Compare the calibration of several models on the same rows, all pairs at once.

    Each of the m pairs gets the interval of :func:`caldist.compare` at confidence
    :math:`1 - \delta/m`, and its p-value times m (Bonferroni). This needs nothing about how the
    pairs depend on each other, every single statement is the one that was tested, and with two
    models it is :func:`caldist.compare` itself.

    **What it means.** With the given confidence *all* intervals contain the population's
    differences. So models can be ranked as far as the intervals exclude 0, without a correction.

    **What it estimates.** The population's differences.

    **Cost.** That of one comparison for every two models: all pairs share the same resamples.

    Parameters
    ----------
    y_true : array-like of 0 and 1
    y_prob : dict from names to array-likes in [0, 1]
        The predictions of each model for the same rows.
    measure : "smooth_ce", "kernel_ce", "random_interval_ce", "weighted_ce" or "brier_score"
    confidence_level : float
        That all intervals hold together.
    n_resamples : int
        How often signs are drawn. It must be at least about 3 m/δ: 999 are enough for 16 pairs at
        95%.
    sample_weight : array-like, optional
    groups : array-like, optional
        The cluster of each row, where rows are not independent.
    rng : int, numpy.random.Generator or None
    progress : bool
        Show a progress bar after two seconds.
    **measure_options
        ``measure_options`` are those of the measure, as in :func:`caldist.compare`.

    Returns
    -------
    Comparisons
        Print it for a table.

    Examples
    --------
    >>> import caldist, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random(2000)
    >>> y_true = rng.random(2000) < truth
    >>> models = {"truth": truth, "root": np.sqrt(truth), "half": np.full(2000, 0.5)}
    >>> print(caldist.compare_all(y_true, models, measure="brier_score"))
                   brier_score  difference      low     high         p
    truth               0.1633
    root                0.1956
    half                0.2500
    truth  - root                  -0.0323  -0.0412  -0.0234  1.61e-16
    truth  - half                  -0.0867  -0.0977  -0.0758  7.83e-59
    root   - half                  -0.0544  -0.0668  -0.0421  2.61e-22
    All intervals hold together with 95% confidence.
    """
    if not isinstance(y_prob, Mapping):
        message = (
            f"y_prob is of type {type(y_prob).__name__}; pass a dict from the name of each model "
            "to its predictions."
        )
        raise TypeError(message)
    label, predictions = _validate.models(y_true, y_prob)
    if len(predictions) < 2:
        message = "y_prob has only one model; at least two are needed to compare."
        raise ValueError(message)
    pairs = _all_pairs(
        label, predictions,
        measure=measure, confidence_level=confidence_level, n_resamples=n_resamples,
        sample_weight=sample_weight, groups=groups, rng=rng, progress=progress,
        options=measure_options,
    )  # fmt: skip
    names = list(predictions)
    values = [pairs[0, 1].value_a, *(pairs[0, k].value_b for k in range(1, len(names)))]
    return Comparisons(
        dict(zip(names, values, strict=True)),
        {(names[a], names[b]): pair for (a, b), pair in pairs.items()},
        measure,
        pairs[0, 1].confidence_level,
        pairs[0, 1].n_resamples,
    )


def _all_pairs(
    y_true: ArrayLike,
    named: Mapping[str, ArrayLike],
    *,
    measure: str,
    confidence_level: float,
    n_resamples: int,
    sample_weight: ArrayLike | None,
    groups: ArrayLike | None,
    rng: _validate.Rng,
    progress: bool,
    options: dict[str, Any],
) -> dict[tuple[int, int], Comparison]:
    """Return the comparisons of all pairs of models, numbered in their order."""
    _check_measure(measure, options)
    confidence_level = _validate.check_fraction("confidence_level", confidence_level)
    resampler = Resampler.of(rng, n_resamples=n_resamples, progress=progress)
    rows = PairedRows.from_arrays(y_true, named, sample_weight, groups)
    rows.warn_if_few(stacklevel=4)
    pairs = list(combinations(range(len(named)), 2))
    delta = (1 - confidence_level) / len(pairs)
    differences: Differences
    if measure == "brier_score":
        differences, made = LossDifferences(rows), 0
    else:
        made = resampler.n_resamples
        order_rank(made, 1 - delta / PARTS)  # too few are refused before they are made
        differences = NormDifferences(rows, measure, options, resampler)
    values = differences.values
    return {
        (a, b): Comparison(
            values[a] - values[b],
            *differences.ends(a, b, delta),
            min(1.0, len(pairs) * differences.pvalue(a, b)),
            values[a],
            values[b],
            measure,
            confidence_level,
            made,
        )
        for a, b in pairs
    }


def _check_measure(measure: object, options: dict[str, Any]) -> None:
    known = (*NORMS, "brier_score")
    if isinstance(measure, str) and measure in MEASURES and measure not in known:
        reason = _REFUSED.get(measure, _UNKNOWN_LAW)
        message = f"measure is {measure!r}, which {reason}"
        raise ValueError(message)
    _validate.check_choice("measure", measure, known)
    if measure == "brier_score" and options:
        message = f"{next(iter(options))} is not an option of brier_score, which has none."
        raise TypeError(message)
    functions = options.get("functions")
    if isinstance(functions, Iterator):  # it is gone through once for each model
        options["functions"] = list(functions)
