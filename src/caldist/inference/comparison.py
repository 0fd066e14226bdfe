"""Which of several models is better calibrated: differences with intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

from numpy.typing import ArrayLike

from caldist._util.numbers import (
    chance,
    down,
    ends,
    least_of,
    number,
    probability,
    signed,
    up,
)
from caldist._util.results import Result
from caldist._util.text_tables import aligned
from caldist.data import validate
from caldist.data.joint import Joint
from caldist.data.rows import Rows, models_of, paired_rows, refuse_beside_joint
from caldist.errors import (
    InvalidInput,
    InvalidType,
    answering,
    refuse_one_of_a_pair,
    refuse_unnamed,
)
from caldist.inference._cross_fit_differences import IndependentSplits, PairedSplits
from caldist.inference.differences import (
    PARTS,
    Differences,
    IndependentNorms,
    Means,
    PairedNorms,
    PairedRows,
)
from caldist.inference.intervals import MANY
from caldist.inference.limits import warn_if_few
from caldist.inference.recipes import moved_outwards
from caldist.inference.resampling import Resampler, order_rank
from caldist.inference.sample import units_of
from caldist.measures.base import Measure
from caldist.measures.registry import all_measures, find

Method = Literal["auto", "resampling", "cross_fit"]


@dataclass(frozen=True)
class Comparison(Result):
    """The difference of a measure between two models, with its uncertainty.

    Attributes
    ----------
    difference
        ``value_a - value_b``: negative where the first model is better.
    lower, upper
        The ends of the confidence interval for the population's difference.
    pvalue
        The smallest 1 - confidence_level at which 0 is outside the interval.
    value_a, value_b
        The measure of each model.
    measure, confidence_level
        What was asked for.
    n_resamples
        The resamples that were made; 0 for the Brier score and for many rows, which are split.
    rounding
        How far rounded predictions may have moved the difference, which the ends allow for.
    least_pvalue
        The smallest p-value that so many resamples can give, for so many pairs; 0 without
        resamples.
    """

    difference: float
    lower: float
    upper: float
    pvalue: float
    value_a: float
    value_b: float
    measure: str
    confidence_level: float
    n_resamples: int
    rounding: float = 0.0
    least_pvalue: float = 0.0

    def __str__(self) -> str:
        text = (
            f"{self.measure} differs by {self.difference:+.4g} ({self.value_a:.4g} less "
            f"{self.value_b:.4g}), {100 * self.confidence_level:g}% confidence interval "
            f"{ends(self.lower, self.upper, plus=True)}, "
            f"{chance(self.pvalue, self.least_pvalue)}"
        )
        if self.rounding == 0:
            return text
        return f"{text}, moved outwards for the rounding of the predictions, by {self.rounding:.2g}"


@dataclass(frozen=True)
class Comparisons(Result):
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

    values: Mapping[str, float]
    pairs: Mapping[tuple[str, str], Comparison]
    measure: str
    confidence_level: float
    n_resamples: int

    def _lines(self) -> list[dict[str, Any]]:
        return [
            {
                "model_a": a,
                "model_b": b,
                "difference": pair.difference,
                "lower": pair.lower,
                "upper": pair.upper,
                "pvalue": pair.pvalue,
            }
            for (a, b), pair in self.pairs.items()
        ]

    def __str__(self) -> str:
        """Return an aligned table."""
        level = f"{100 * self.confidence_level:g}%"
        lines: list[tuple[str, ...]] = [("", "", self.measure, "difference", "lower", "upper", "p")]
        lines += [(name, "", number(value), "", "", "", "") for name, value in self.values.items()]
        for (a, b), pair in self.pairs.items():
            limits = down(pair.lower, 4, plus=True), up(pair.upper, 4, plus=True)
            p = probability(pair.pvalue, pair.least_pvalue)
            lines.append((a, f"- {b}", "", signed(pair.difference), *limits, p))
        return "\n".join(
            [*aligned(lines, left={0, 1}), f"All intervals hold together with {level} confidence."]
        )


@answering
def compare(
    y_true: ArrayLike | Joint,
    y_prob_a: ArrayLike | Joint | None = None,
    y_prob_b: ArrayLike | None = None,
    *,
    measure: str | Measure[Any] = "smooth_ce",
    confidence_level: float = 0.95,
    n_resamples: int = 999,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    clusters: ArrayLike | None = None,
    method: Method = "auto",
    rng: validate.Rng = 0,
    progress: bool = False,
) -> Comparison:
    r"""Compare the calibration of two models on the same rows, or of two independent samples.

    ``compare(y_true, y_prob_a, y_prob_b)`` is about two models on the same rows;
    ``compare(joint_a, joint_b)`` about two samples that are independent of each other: before and
    after, two arms, two months. Two models on the same rows are not, so pass the rows there.

    With :math:`T = \|c\|` the measure as a norm of the residual masses c, :math:`h = \sum_i
    \pm c^{(i)}` those of the rows with random signs, shared by both models, :math:`\hat w` the
    witness of a model and :math:`Q` the quantile of level :math:`1 - \delta/3` over the signs,

    .. math::

        \mathrm{lower} &= T_a - T_b - Q(\|h_a\| - \langle \hat w_b, h_b \rangle) \\
        \mathrm{upper} &= T_a - T_b + Q(\|h_b\| - \langle \hat w_a, h_a \rangle)

    cut off at :math:`\pm(\|c_a - c_b\| + z s + \ln(3/\delta)\,m/3)`, the upper end of the interval
    for :math:`\|c_a - c_b\|`, where s is the standard error of the mean of
    :math:`e_a w(v_a) - e_b w(v_b)`, w the witness of :math:`c_a - c_b`, and m the largest part of
    one row in that mean. Independent samples have signs and errors of their own, and rounded
    predictions move the ends outwards.

    **What it means.** With the given confidence the population's difference lies between ``lower``
    and ``upper``. It also holds where one model or both are calibrated, where bootstrapped
    differences miss the truth more often than not: noise makes a measure larger, never smaller,
    and more so for some predictions than for others. The Brier score is a mean and needs none of
    this: its interval is that of the paired differences of the losses.

    **Many rows.** From 100,000 rows on no signs are drawn: with x the rows' values of
    :math:`e_a w(v_a)`, each by functions w that the row had no part in, the lower end is the mean
    of :math:`x - e_b \hat w_b(v_b)` less its normal error, and the upper end likewise. What the
    models have in common is in neither.

    **What it estimates.** The population's difference.

    **Cost.** O(n log n) and then O(n) for each resample, of which many rows need none.

    Parameters
    ----------
    y_true : array-like of 0 and 1, or Joint
    y_prob_a, y_prob_b : array-like in [0, 1]
        ``y_prob_a`` and ``y_prob_b`` are the predictions of the two models for the same rows. If
        ``y_true`` is a joint, ``y_prob_a`` is the other one.
    measure : measure or its name
        ``smooth_ce``, ``kernel_ce``, ``random_interval_ce``, ``weighted_ce`` or ``brier_score``,
        with its options bound: ``measure=caldist.kernel_ce.using(bandwidth=0.1)``.
    confidence_level : float
    n_resamples : int
        How often signs are drawn; not used for the Brier score.
    sample_weight : array-like, optional
    pos_label : optional
        The value of ``y_true`` that counts as label 1, where labels are not 0 and 1.
    clusters : array-like, optional
        The cluster of each row, where rows are not independent. Signs flip for whole clusters.
    method : "auto", "resampling" or "cross_fit"
        "auto" is resampling below 100,000 rows and "cross_fit", as above, from there on.
    rng : int, numpy.random.Generator or None
        The same rows give the same answer, on any number of cores; None draws a fresh seed.
        Exchanging two models on the same rows mirrors it.
    progress : bool
        Show a progress bar after two seconds.

    Returns
    -------
    Comparison

    Warns
    -----
    UserWarning
        With fewer than ten rows of either label, or fewer than ten clusters.

    Examples
    --------
    >>> import caldist
    >>> demo = caldist.datasets.load_demo()
    >>> logistic, forest = demo.y_prob["logistic_regression"], demo.y_prob["random_forest"]
    >>> result = caldist.compare(demo.y_true, logistic, forest)
    >>> result.upper < 0, result.pvalue <= 0.05
    (True, True)
    """
    chosen = comparable(measure)
    confidence_level = validate.check_fraction("confidence_level", confidence_level)
    validate.check_choice("method", method, ("auto", "resampling", "cross_fit"))
    resampler = Resampler.of(rng, n_resamples=n_resamples, progress=progress)
    if isinstance(y_true, Joint | Rows) or isinstance(y_prob_a, Joint | Rows):
        pair = _independent(y_true, y_prob_a, y_prob_b, sample_weight, clusters, pos_label)
        return independent_comparison(pair, chosen, confidence_level, resampler, method)
    refuse_one_of_a_pair(y_prob_a, y_prob_b, "caldist.inference.compare_all(y_true, models)")
    called = {"y_prob_a": y_prob_a, "y_prob_b": y_prob_b}
    rows = paired_rows(
        y_true, called, sample_weight=sample_weight, clusters=clusters, pos_label=pos_label
    )
    models = dict(zip("ab", rows, strict=True))
    return paired_comparisons(models, chosen, confidence_level, resampler, method)["a", "b"]


@answering
def compare_all(
    y_true: ArrayLike,
    y_prob: Mapping[str, ArrayLike] | None = None,
    *,
    measure: str | Measure[Any] = "smooth_ce",
    confidence_level: float = 0.95,
    n_resamples: int = 999,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    clusters: ArrayLike | None = None,
    method: Method = "auto",
    rng: validate.Rng = 0,
    progress: bool = False,
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
    measure : measure or its name
        As in :func:`caldist.compare`.
    confidence_level : float
        That all intervals hold together.
    n_resamples : int
        How often signs are drawn. It must be at least about 3 m/δ: 999 are enough for 16 pairs at
        95%.
    sample_weight : array-like, optional
    pos_label : optional
        The value of ``y_true`` that counts as label 1, where labels are not 0 and 1.
    clusters : array-like, optional
        The cluster of each row, where rows are not independent.
    method
        As in :func:`caldist.compare`.
    rng : int, numpy.random.Generator or None
        The same rows give the same answer, on any number of cores; None draws a fresh seed.
    progress : bool
        Show a progress bar after two seconds.

    Returns
    -------
    Comparisons
        Print it for a table.

    Examples
    --------
    >>> import caldist
    >>> demo = caldist.datasets.load_demo()
    >>> models = {
    ...     "forest": demo.y_prob["random_forest"],
    ...     "boosting": demo.y_prob["gradient_boosting"],
    ...     "tree": demo.y_prob["decision_tree"],
    ... }
    >>> print(caldist.inference.compare_all(demo.y_true, models, measure="brier_score"))
                          brier_score  difference     lower     upper        p
    forest                     0.0352
    boosting                   0.0334
    tree                       0.1018
    forest    - boosting                 +0.00187  -0.00229  +0.00602    0.828
    forest    - tree                      -0.0666   -0.0835   -0.0497  3.5e-18
    boosting  - tree                      -0.0685   -0.0855   -0.0514  7.7e-19
    All intervals hold together with 95% confidence.
    """
    for argument, part in (("y_true", y_true), ("y_prob", y_prob)):
        items = part.values() if isinstance(part, Mapping) else [part]
        if any(isinstance(item, Joint) for item in items):
            raise InvalidType(
                argument=argument,
                reason="has a Joint, but models are compared on the same rows, which summaries do "
                "not have",
                remedy="Pass labels and {name: predictions}, or compare two independent samples "
                "with caldist.compare(joint_a, joint_b).",
            )
    if not isinstance(y_prob, Mapping):
        refuse_unnamed(y_prob)
    chosen = comparable(measure)
    confidence_level = validate.check_fraction("confidence_level", confidence_level)
    validate.check_choice("method", method, ("auto", "resampling", "cross_fit"))
    resampler = Resampler.of(rng, n_resamples=n_resamples, progress=progress)
    models = models_of(
        y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label, clusters=clusters
    )
    if len(models) < 2:
        reason = "has only one model, but at least two are needed to compare"
        raise InvalidInput(argument="y_prob", reason=reason)
    first, *others = models
    pairs = paired_comparisons(models, chosen, confidence_level, resampler, method)
    one = pairs[first, others[0]]
    values = {first: one.value_a, **{name: pairs[first, name].value_b for name in others}}
    return Comparisons(values, pairs, one.measure, confidence_level, one.n_resamples)


def paired_comparisons(
    models: Mapping[str, Rows],
    measure: Measure[Any],
    confidence_level: float,
    resampler: Resampler,
    method: Method = "auto",
) -> dict[tuple[str, str], Comparison]:
    """Compare all pairs of models on the same rows, in one statement for all of them."""
    paired = PairedRows(list(models.values()))
    made = 0
    differences: Differences
    if measure.facts.loss is not None:
        differences = Means(measure.facts.loss, paired)
    elif is_split(method, paired.label.size):
        differences = PairedSplits(paired, measure, resampler)
    else:
        made = resampler.n_resamples
        # Too few are refused before they are made.
        _refuse_few(made, confidence_level, len(models))
        differences = PairedNorms(paired, measure, resampler)
    warn_if_few(units_of(paired.models[0]))  # now, as the order of rows is known
    joints = [model.joint for model in models.values()]
    found = _compared(differences, measure, joints, confidence_level, made)
    names = list(models)
    return {(names[a], names[b]): one for (a, b), one in found.items()}


def _least_pvalue(draws: int, pairs: int) -> float:
    return min(1.0, pairs * PARTS * least_of(draws)) if draws else 0.0


def independent_comparison(
    pair: tuple[Rows, Rows],
    measure: Measure[Any],
    confidence_level: float,
    resampler: Resampler,
    method: Method = "auto",
) -> Comparison:
    """Compare two samples that are independent of each other."""
    for rows in pair:
        warn_if_few(units_of(rows))
    units, joints = [units_of(rows) for rows in pair], [rows.joint for rows in pair]
    made = 0
    differences: Differences
    if measure.facts.loss is not None:
        differences = Means(measure.facts.loss, units)
    elif is_split(method, min(part.n_rows for part in units)):
        differences = IndependentSplits(units, measure, resampler)
    else:
        made = resampler.n_resamples
        _refuse_few(made, confidence_level, 2)
        differences = IndependentNorms(units, measure, resampler)
    found = _compared(differences, measure, joints, confidence_level, made)
    return found[0, 1]


def is_split(method: Method, rows: int) -> bool:
    """Return whether rows are split, instead of drawing signs."""
    return method == "cross_fit" or (method == "auto" and rows >= MANY)


def _refuse_few(n_resamples: int, confidence_level: float, models: int) -> None:
    """Raise if no replicate would be large enough to be a limit."""
    order_rank(n_resamples, 1 - (1 - confidence_level) / math.comb(models, 2) / PARTS)


def _compared(
    differences: Differences,
    measure: Measure[Any],
    joints: Sequence[Joint],
    confidence_level: float,
    n_resamples: int,
) -> dict[tuple[int, int], Comparison]:
    """Return all pairs, the ends moved outwards by what rounding may have done."""
    pairs = list(combinations(range(len(joints)), 2))
    delta = (1 - confidence_level) / len(pairs)
    moved = [
        _moved(measure, joint, value)
        for joint, value in zip(joints, differences.values, strict=True)
    ]
    value = [shown for shown, _, _ in moved]
    ceiling = measure.facts.ceiling
    found = {}
    for a, b in pairs:
        (_, below_a, above_a), (_, below_b, above_b) = moved[a], moved[b]
        rounding = max(below_a + above_b, above_a + below_b)
        lower, upper = differences.ends(a, b, delta)
        found[a, b] = Comparison(
            difference=value[a] - value[b],
            lower=max(lower - below_a - above_b, -ceiling),
            upper=min(upper + above_a + below_b, ceiling),
            pvalue=min(1.0, len(pairs) * differences.pvalue(a, b, rounding)),
            value_a=value[a],
            value_b=value[b],
            measure=str(measure),
            confidence_level=confidence_level,
            n_resamples=n_resamples,
            rounding=rounding,
            least_pvalue=_least_pvalue(n_resamples, len(pairs)),
        )
    return found


def _moved(measure: Measure[Any], joint: Joint, value: float) -> tuple[float, float, float]:
    """Return the value, and how far the rows' own may lie below and above the one on the joint."""
    moved, lower, upper = moved_outwards(measure, joint, value, value, value)
    return moved, max(0.0, value - lower), max(0.0, upper - value)


def _independent(
    y_true: Any,
    y_prob_a: Any,
    y_prob_b: Any,
    sample_weight: Any,
    clusters: Any,
    pos_label: Any,
) -> tuple[Rows, Rows]:
    """Return the rows of two joints, or say what is missing."""
    refuse_beside_joint(
        y_prob_b=y_prob_b, sample_weight=sample_weight, clusters=clusters, pos_label=pos_label
    )
    for name, joint in (("y_true", y_true), ("y_prob_a", y_prob_a)):
        if not isinstance(joint, Joint | Rows):
            raise InvalidType(
                argument=name,
                reason=f"is of type {type(joint).__name__}, but the other sample is a Joint",
                remedy="Compare two joints as independent samples, compare(joint_a, joint_b). Two "
                "models on the same rows need these rows: compare(y_true, y_prob_a, y_prob_b).",
            )
    return Rows.of(y_true), Rows.of(y_prob_a)


def comparable(measure: object) -> Measure[Any]:
    """Return the measure that is meant, if two models can be compared by it."""
    chosen = find(measure, among=[m.name for m in all_measures().values() if m.is_comparable])
    if not chosen.is_comparable:
        why = chosen.facts.no_comparison
        raise InvalidInput(
            argument="measure",
            value=chosen.name,
            reason=f"it {why.reason}",
            remedy=why.remedy,
        )
    return chosen
