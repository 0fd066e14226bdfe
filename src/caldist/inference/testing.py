"""Tests of calibration: exact for perfect calibration, and for a distance within a tolerance."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from caldist._util.numbers import chance, least_of
from caldist._util.results import Result
from caldist._util.types import Integers
from caldist._util.warning import warn
from caldist.data import validate
from caldist.data.joint import Joint
from caldist.data.rows import Rows
from caldist.errors import InvalidInput, answering
from caldist.inference import _grid
from caldist.inference._grid import cells_of_equal_mass
from caldist.inference.classical import CLASSICAL
from caldist.inference.folds import ordered_units
from caldist.inference.limits import Limits, few_parts, warn_if_few
from caldist.inference.noise import Statistic, noise_of, statistic_of
from caldist.inference.null_distribution import drawing_error, label_dependence, null_ranks
from caldist.inference.resampling import Resampler
from caldist.inference.sample import FEW, Draw, Units, units_of
from caldist.measures.base import Measure
from caldist.measures.lower_distance import lower_distance
from caldist.measures.registry import all_measures, find, shown_in

_SHOWN_LEVEL = 0.05  # at which "auto" should be able to reject
_BITS = range(12, 17)  # of a grid for many rows: the first one whose effect is small
_CELLS = 2**13  # for residuals of rows with weights or clusters
_MANY_CELLS = 20_000  # of a summary, from which fewer are tried
_EFFECT = 0.01 * _SHOWN_LEVEL  # by which a grid may raise a p-value
_LINEAR = "spiegelhalter"  # of the classical statistics the one that does not group rows


@dataclass(frozen=True)
class TestResult(Result):
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
    rounding
        What the p-value was raised by because labels were drawn from rounded predictions, so that
        the test keeps its level; with a tolerance, by how much the statistic was taken to be less,
        because rounding may have raised it. 0 for exact predictions.
    """

    __test__: ClassVar[bool] = False  # not a test case, whatever its name makes pytest think

    statistic: float
    pvalue: float
    measure: str
    n_resamples: int
    asymptotic_pvalue: float | None = None
    components: tuple[TestResult, ...] = ()
    tolerance: float | None = None
    rounding: float = 0.0

    def __str__(self) -> str:
        near = "" if self.tolerance is None else f" to within {self.tolerance:g}"
        p = chance(self.pvalue, least_of(self.n_resamples))
        text = f"{p} for labels at least this far from predictions that are "
        text += f"calibrated{near} ({self.measure}, {self.n_resamples} draws)"
        if self.rounding == 0:
            return text
        if self.tolerance is not None:
            return f"{text}, with {self.rounding:.2g} taken off for the rounding of the predictions"
        return f"{text}, {self.rounding:.2g} of it for the rounding of the predictions"


@answering
def calibration_test(
    y_true: ArrayLike | Joint,
    y_prob: ArrayLike | None = None,
    *,
    measure: str | Measure[Any] = "auto",
    n_resamples: int = 999,
    tolerance: float | None = None,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    clusters: ArrayLike | None = None,
    rng: validate.Rng = 0,
    progress: bool = False,
) -> TestResult:
    r"""Test whether predictions are perfectly calibrated, or within a tolerance of it.

    The predictions stay, labels y* are drawn with the predicted probabilities, B times, and

    .. math:: p = \frac{1 + \#\{T^* \ge T\}}{B + 1}

    for the statistic T of the data. If the predictions are perfectly calibrated, p ≤ α happens with
    probability at most α: in every sample size, for every statistic, with ties and with weights
    that do not depend on the labels. From a summary of rows with unequal weights, of which only
    sums are known, it is approximate.

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

    **Clusters.** Rows of one patient or one game are not independent. With ``clusters`` a replicate
    flips the sign of all residuals of a cluster together. That is exact where a cluster's residuals
    are as likely as their negatives, and otherwise right for many clusters: with k of them no
    p-value is below about 2/2^k. Where those that have one of the labels are worth fewer than 100
    of equal mass, signs alone would reject too often, because what comes rarely and at once may not
    have come: there the p-value is the larger one of two, the other by labels that depend within a
    cluster as much as they seem to, and two standard errors more; below ten, as much as they can.
    Do not use it for independent rows, where drawing labels is exact.

    **With a tolerance** the hypothesis is that the population's ``measure`` is at most ε; "auto"
    is then the lower distance to calibration, which no distance to calibration is below. With D*
    by how much noise can raise it, :math:`p = (1 + \#\{D^* \ge T - \varepsilon\})/(B + 1)`, the
    larger of two: noise by random signs of the rows and by labels drawn anew. If the lower limit by
    splitting exceeds ε at a smaller level, p is that level. So p ≤ α if and only if ε lies below
    the interval of :func:`caldist.confidence_interval` at level 1 - 2α, for α < 1/2. It is right
    for large samples, grows with ε, and is careful: at ε = 0 the exact test finds far more.
    Since smCE ≤ 2 ldCE, ``measure="smooth_ce"`` with 2ε tests the same; it is the weaker of the two
    but for deviations close to the noise.

    **Many rows.** From 100,000 different predictions on, labels are drawn for the cells of a grid,
    whose effect on the level is known: it is at most 0.0005, and added to the p-value. So a million
    rows take about a second. The statistic itself is that of the rows. With weights or clusters
    every row is drawn, and residuals are added up in cells, which leaves the level as it is. A
    tolerance and measures for which rounding has no bound need the rows. A summary of 20,000 cells
    and more is drawn on fewer cells in the same way.

    **Cost.** A sort, then O(n) for each replicate, without sorting, on all cores; memory O(n + B).
    Measures that are not a single pass cost B times what they cost once: ``lower_distance``,
    ``upper_distance``, ``interval_ce`` and ``kernel_smoothed_ece`` take minutes where others take a
    second.

    Parameters
    ----------
    y_true : array-like of 0 and 1, or Joint
        A joint stands for labels, predictions and weights at once.
    y_prob : array-like in [0, 1]
        The predicted probability of label 1.
    measure : measure or name
        "auto", any measure, with its options bound if it has any, "spiegelhalter" (two-sided) or
        "hosmer_lemeshow" (ten groups of equal mass). All but Spiegelhalter's z reject when large,
        ``brier_score`` too, which therefore overlooks predictions that are not extreme enough.
    n_resamples : int
        B above. The p-value is a multiple of 1/(B + 1), for "auto" often at least three of them.
    tolerance : float, optional
        ε above. For "auto", ``lower_distance`` and the measures that are norms of the residuals:
        ``smooth_ce``, ``kernel_ce``, ``random_interval_ce``, ``weighted_ce``.
    sample_weight : array-like, optional
        Weights must not depend on the labels.
    pos_label : optional
        The value of ``y_true`` that counts as label 1, where labels are not 0 and 1.
    clusters : array-like, optional
        The cluster of each row.
    rng : int, numpy.random.Generator or None
        The same rows give the same answer, on any number of cores; None draws a fresh seed.
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

    Warns
    -----
    UserWarning
        Where the clusters that have one of the labels are worth fewer than ten, or n_resamples is
        so small that no p-value can be expected below 0.05; with ``tolerance`` where the rows or
        clusters that have one of the labels are worth fewer than ten.

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
    >>> result = caldist.calibration_test(y_true, y_prob)
    >>> result.pvalue < 0.01
    True
    >>> [part.measure for part in result.components]
    ['smooth_ce', 'random_interval_ce', 'spiegelhalter']
    >>> caldist.calibration_test(y_true, y_prob, tolerance=0.5).pvalue
    1.0
    """
    names = _names(measure)
    rows = Rows.of(
        y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label, clusters=clusters
    )
    _check(names, tolerance=tolerance, clustered=rows.cluster is not None)
    resampler = Resampler.of(rng, n_resamples=n_resamples, progress=progress)
    units = units_of(rows)
    if tolerance is not None:
        chosen = names[0] if isinstance(measure, Measure) or measure != "auto" else lower_distance
        assert isinstance(chosen, Measure)  # noqa: S101 -- others have no tolerance
        tolerance = validate.check_limit(
            "tolerance", tolerance, ceiling=chosen.facts.ceiling, allow_zero=True
        )
        warn_if_few(units)
        return _tolerance_test(rows, chosen, tolerance, resampler)
    statistics = _statistics(names, units)
    draws = resampler.n_resamples + 1
    if len(names) > 1 and len(names) / draws > _SHOWN_LEVEL:
        _warn_of_few_draws(len(names), resampler.n_resamples)
    cells = _round_to_grid(rows, names) or _Cells.of_all(rows)
    compared = _statistics(names, cells.units)
    values = np.array([part.of(units.residual) for part in statistics])
    _, rank = null_ranks(cells.units, compared, resampler, cells.draw)
    best = rank.min(axis=1)
    together, ranks = int(np.count_nonzero(best <= best[0])), rank[0]
    if cells.labels is not None:
        _, rank = null_ranks(cells.units, compared, resampler, cells.labels)
        ranks = np.maximum(ranks, rank[0])
        best = rank.min(axis=1)
        together = max(together, int(np.count_nonzero(best <= best[0])))
    missed = cells.missed
    results = tuple(
        TestResult(
            statistic=float(value),
            pvalue=min(1.0, int(count) / draws + missed),
            measure=str(name),
            n_resamples=resampler.n_resamples,
            asymptotic_pvalue=None if part.tail is None else part.tail(float(value)),
            rounding=missed,
        )
        for name, part, value, count in zip(names, statistics, values, ranks, strict=True)
    )
    if len(names) == 1:
        return results[0]
    return TestResult(
        statistic=int(ranks.min()) / draws,
        pvalue=min(1.0, together / draws + missed),
        measure="auto",
        n_resamples=resampler.n_resamples,
        components=results,
        rounding=missed,
    )


def _statistics(names: list[Measure[Any] | str], units: Units) -> list[Statistic]:
    return [
        statistic_of(name, units) if isinstance(name, Measure) else CLASSICAL[name](units)
        for name in names
    ]


class _Cells(NamedTuple):
    """What statistics are compared on: the rows' support, or coarser cells.

    ``labels`` draws those of few clusters, of which signs alone say too little; ``missed`` bounds
    by how much the level is missed.
    """

    units: Units
    draw: Draw
    missed: float
    labels: Draw | None = None

    @classmethod
    def of_all(cls, rows: Rows) -> _Cells:
        """Return all predictions."""
        units = units_of(rows)
        if units.cluster is None:
            return cls(units, units.draw, drawing_error(rows.joint))
        return cls(units, units.flip, 0.0, _labels(units, np.arange(units.prediction.size)))

    @classmethod
    def of_summary(cls, coarse: Joint) -> _Cells:
        """Return cells with predictions of their own, which rows are taken to have."""
        units = units_of(Rows.of(coarse))
        return cls(units, units.draw, drawing_error(coarse))

    @classmethod
    def of_rows(cls, units: Units) -> _Cells:
        """Return cells in which residuals of rows are added up that are drawn one by one.

        A statistic of these sums is one of the labels like any other: its test is exact, too.
        """
        few = units.prediction.size <= _CELLS
        cell = np.arange(units.prediction.size) if few else cells_of_equal_mass(units, _CELLS)
        if units.cluster is None:
            return cls(units.sum_over_cells(cell), units.drawing_in(cell), 0.0)
        return cls(units.sum_over_cells(cell), units.flipping_in(cell), 0.0, _labels(units, cell))


def _round_to_grid(rows: Rows, names: list[Measure[Any] | str]) -> _Cells | None:
    """Return many rows on a grid whose effect is small; None if the rows are better."""
    bounded = all(
        name.facts.rounding is not None if isinstance(name, Measure) else name == _LINEAR
        for name in names
    )
    joint = rows.joint
    if not bounded or (joint.grid is None and joint.radius > 0):
        return None
    if rows.weighted or rows.cluster is not None:
        many = not rows.is_summary and units_of(rows).place.size >= _grid.MANY
        return _Cells.of_rows(units_of(rows)) if many else None
    if joint.prediction.size < (_grid.MANY if joint.grid is None else _MANY_CELLS):
        return None
    finest = _BITS.stop if joint.grid is None else joint.grid.bits  # which it is on already
    made = (joint.coarsen(bits) for bits in _BITS if bits < finest)
    coarse = next((one for one in made if drawing_error(one) <= _EFFECT), None)
    return None if coarse is None else _Cells.of_summary(coarse)


def _labels(units: Units, cell: Integers) -> Draw | None:
    """Return what draws labels of clusters in cells, if signs alone say too little."""
    if not units.draws_labels:
        return None
    if words := few_clusters_in_words(units):
        warn(words)
    return units.drawing_in(cell, label_dependence(units))


def few_clusters_in_words(units: Units) -> str:
    """Say why a test with clusters is a rough guide; nothing if it is not."""
    few = "" if units.cluster is None else few_parts(units)
    return few and (
        f"only {few}: with fewer than {FEW} the p-value is the larger of two, by signs of clusters "
        "and by labels that depend within them as much as they can. Take it as a rough guide."
    )


def _warn_of_few_draws(components: int, n_resamples: int) -> None:
    message = (
        f"n_resamples is {n_resamples}: the least p-value of {components} statistics is hardly "
        f"below {components}/{n_resamples + 1}, so that the test can hardly reject at 5%. Take at "
        f"least {math.ceil(components / _SHOWN_LEVEL) - 1}, better 999."
    )
    warn(message)


def _names(measure: object) -> list[Measure[Any] | str]:
    """Return the measures and classical tests that are meant."""
    if measure == "auto":
        # One that sees a shift of the mean, one bumps and waves, one over-confidence.
        return [*shown_in("test"), next(iter(CLASSICAL))]
    if isinstance(measure, str) and measure in CLASSICAL:
        return [measure]
    able = [name for name, one in all_measures().items() if not one.facts.no_test]
    found = find(measure, among=["auto", *able, *CLASSICAL])
    if why := found.facts.no_test:
        raise InvalidInput(argument="measure", value=found.name, **why._asdict())
    return [found]


def _check(names: list[Measure[Any] | str], *, tolerance: object, clustered: bool) -> None:
    if len(names) > 1:
        return
    [name] = names
    known = all_measures().values()
    if tolerance is not None and not (isinstance(name, Measure) and name.takes_tolerance):
        able = ", ".join(m.name for m in known if m.takes_tolerance)
        raise InvalidInput(
            argument="measure",
            value=str(name),
            reason="it cannot be tested against a tolerance",
            remedy=f"Use {able}, or leave tolerance out.",
        )
    if tolerance is None and clustered and isinstance(name, Measure) and not name.takes_clusters:
        able = ", ".join([*(m.name for m in known if m.takes_clusters), *CLASSICAL])
        raise InvalidInput(
            argument="measure",
            value=str(name),
            reason="it needs labels, but with clusters the residuals change sign",
            remedy=f"Use auto, {able}, or leave clusters out.",
        )


def _tolerance_test(
    rows: Rows, measure: Measure[Any], tolerance: float, resampler: Resampler
) -> TestResult:
    """Invert the lower end of the measure's confidence interval, with the same replicates.

    That end is the better one of two, so the p-value is the smaller one of two.
    """
    value = measure.of(rows.joint)
    ends = measure.rounding(rows.joint, value)
    if ends is None:
        raise InvalidInput(
            argument="joint",
            reason=f"has rounded predictions, and what that does to {measure} is not bounded",
            remedy="Use measure='lower_distance', or a joint of exact predictions.",
        )
    floor = ends[0] - tolerance
    units = ordered_units(rows)
    noise = noise_of(measure, units, floor)
    rank = 1 + max(
        np.count_nonzero(resampler.run(replicate, family=family, size=units.n_rows) >= floor)
        for family, replicate in noise.items()
    )
    limits = Limits(units, 1.0, resampler)
    split = limits.split_pvalue(measure, tolerance + value - ends[0])
    return TestResult(
        statistic=min(max(value, ends[0]), ends[1]),
        pvalue=min(int(rank) / (resampler.n_resamples + 1), split),
        measure=str(measure),
        n_resamples=resampler.n_resamples,
        tolerance=tolerance,
        rounding=max(0.0, value - ends[0]),
    )
