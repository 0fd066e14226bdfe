"""Calibration in the words of medicine: intercept, slope, observed over expected, ICI."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caldist._util.numbers import ends
from caldist._util.products import dot, gram
from caldist._util.results import Result
from caldist._util.text_tables import aligned
from caldist._util.types import Vector
from caldist.clinical.loess import Smoother, SmootherName, smoother_of
from caldist.clinical.logistic import Counts, logit, score_test, variance_of_line
from caldist.clinical.rates import Rates, factors, means, rates_of, ratio_of
from caldist.data import validate
from caldist.data.joint import Joint
from caldist.data.rows import Rows
from caldist.errors import InvalidInput, answering
from caldist.inference.classical import chi_squared_tail
from caldist.inference.intervals import Interval
from caldist.inference.limits import normal_quantile, warn_if_few
from caldist.inference.null_distribution import drawing_error
from caldist.inference.resampling import Resampler, order_statistic
from caldist.inference.sample import Units, units_of

NAMES = {
    "intercept": "intercept (in the large)",
    "slope": "slope",
    "observed_over_expected": "observed / expected",
    "ici": "ICI",
    "e50": "E50",
    "e90": "E90",
    "emax": "Emax",
}
_LINE = ("intercept", "slope")
_CURVE = ("ici", "e50", "e90", "emax")
_POINTS = 1000  # predictions at which the noise of the curve is looked at
_BLOCK = 1 << 15  # predictions whose functions are held in memory at once
_EMPIRICAL, _BY_PREDICTION = 60, 61  # random streams
_LINE_ROUNDED = (
    "log odds near 0 and 1 magnify what rounding has moved, and no bound on that is proved: pass "
    "the rows, or a joint of exact predictions, as Joint.from_arrays makes it"
)
_CURVE_ROUNDED = (
    "the windows of the smoother depend on the order of predictions, which rounding has changed, "
    "and no bound on that is proved: pass the rows for an interval"
)


@dataclass(frozen=True)
class CoxTest(Result):
    """Cox's test that the calibration intercept is 0 and the slope 1.

    ``method`` is "likelihood ratio", or "score" where rows have weights or clusters; the statistic
    is chi-squared with ``df`` degrees of freedom under the hypothesis.
    """

    statistic: float
    pvalue: float
    df: int
    method: str

    def __str__(self) -> str:
        p = f"p = {self.pvalue:.2g}" if self.pvalue >= 1e-4 else "p < 0.0001"
        return (
            f"Cox's test of intercept 0 and slope 1: {self.method} statistic {self.statistic:.3g} "
            f"with {self.df} degrees of freedom, {p}"
        )


@dataclass(frozen=True)
class CalibrationSummary(Result):
    """The result of :func:`caldist.clinical.calibration_summary`.

    Attributes
    ----------
    intercept, slope, observed_over_expected, ici, e50, e90, emax
        Each a :class:`caldist.inference.Interval`. Where predictions were rounded, and no bound on
        the effect is proved, there is no interval, and of intercept and slope no value; ``note``
        then says why, and what to pass.
    test
        Cox's test of intercept 0 and slope 1: ``statistic``, ``pvalue``, ``df``, ``method``.
    observed_rate, mean_prediction
        The frequency of label 1, and what the predictions say it is.
    n_rows, n_positives
        The rows, and those of label 1; None where a summary does not say.
    confidence_level
        Of each interval by itself.
    smoother
        "loess" or "lowess", which the curve behind ``ici``, ``e50``, ``e90`` and ``emax`` is.
    rates
        ``mean_prediction`` and ``observed_rate`` with the factor between them, which ``str`` says
        in words. Of label 0 where that is the rare one.
    """

    intercept: Interval
    slope: Interval
    observed_over_expected: Interval
    ici: Interval
    e50: Interval
    e90: Interval
    emax: Interval
    test: CoxTest
    observed_rate: float
    mean_prediction: float
    n_rows: int | None
    n_positives: int | None
    confidence_level: float
    smoother: str
    rates: Rates = field(compare=False, repr=False)

    @property
    def estimates(self) -> dict[str, Interval]:
        """The seven estimates, by name."""
        return {name: getattr(self, name) for name in NAMES}

    def _lines(self) -> list[dict[str, Any]]:
        return [
            {"measure": name} | {key: part.to_dict()[key] for key in ("value", "lower", "upper")}
            for name, part in self.estimates.items()
        ]

    def __str__(self) -> str:
        level = f"{100 * self.confidence_level:g}% interval"
        rows = [["", "value", level]]
        without: dict[tuple[str, str], list[str]] = {}
        for name, part in self.estimates.items():
            value, limits = "–" if part.value is None else f"{part.value:.3g}", "–"
            if part.value is not None and not part.note:
                limits = ends(part.lower, part.upper, 3)
                if name == "observed_over_expected":
                    value, low, high = factors(part.value, part.lower, part.upper)
                    limits = f"{low} to {high}"
            rows.append([NAMES[name], value, limits])
            if part.note:
                what = "value" if part.value is None else "interval"
                without.setdefault((what, part.note), []).append(NAMES[name])
        size = "" if self.n_rows is None else f"; {self.n_rows:,} rows"
        if self.n_positives is not None:
            size += f", {self.n_positives:,} of label 1"
        head = f"{self.rates}{size}"
        notes = [
            f"No {what} of {', '.join(names)}: {why}." for (what, why), names in without.items()
        ]
        return "\n".join([head, *aligned(rows, left={0}), str(self.test), *notes])


@answering
def calibration_summary(
    y_true: ArrayLike | Joint,
    y_prob: ArrayLike | None = None,
    *,
    smoother: SmootherName = "loess",
    confidence_level: float = 0.95,
    n_resamples: int = 999,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    clusters: ArrayLike | None = None,
    rng: validate.Rng = 0,
) -> CalibrationSummary:
    r"""Return what a validation study of a risk model reports on calibration.

    With :math:`\ell = \log(v/(1 - v))`, the log odds of the prediction,

    - **intercept**, calibration in the large: a of the logistic model with log odds a + ℓ (an
      offset). Above 0 risks are predicted too low, below 0 too high.
    - **slope**: b of the logistic model with log odds a + b ℓ. Below 1 predictions are too extreme.
    - **observed_over_expected**: the frequency of label 1 over the mean prediction.
    - **ici**, **e50**, **e90**, **emax**: mean, median, 90% quantile and maximum over the rows of
      \|curve − v\|, the distance of a smooth calibration curve from the predictions.
    - **test**: Cox's test of a = 0 and b = 1.

    **What it means.** These are the numbers of the reporting guidelines for prediction models
    (TRIPOD; Van Calster et al.). Intercept 0, slope 1 and O/E 1 do not mean calibrated: errors in
    opposite directions cancel. The ICI and its relatives see them, as far as the smoother does.

    **Agreement with R.** Intercept, slope and likelihood-ratio test are those of
    ``CalibrationCurves::val.prob.ci.2`` and ``pmcalibration::logistic_cal``. ``rms::val.prob`` has
    the same slope and test ("U"), but its "Intercept" is that of the line with the slope, not of
    the model with an offset. With ``smoother="loess"``, the definition of Austin and Steyerberg,
    the curve is R's ``loess(y ~ p)`` (span 0.75, degree 2, interpolated): ``Eavg`` and ``Emax`` of
    CalibrationCurves, ``smooth="loess"`` with ``transf="none"`` of pmcalibration. With
    ``smoother="lowess"`` it is ``lowess(p, y, iter=0)``: ``Eavg``, ``E90`` and ``Emax`` of
    ``rms::val.prob``. The default of pmcalibration is a spline on the log odds: its values differ.

    **Intervals.** Those of intercept and slope come from a sandwich covariance, which holds
    whatever the true curve is and respects weights and clusters; R's come from the model or the
    profile of its likelihood, which suppose that the line is true. That of O/E is made on the log
    scale, predictions random too. Those of ICI, E50, E90 and Emax speak of the smoother's curve of
    the population at these predictions, cut to [0, 1] where it leaves it. The curve's error is a
    random curve with a covariance that is known, drawn ``n_resamples`` times: the lower end of the
    ICI takes off its quantile, the upper end adds the error of one mean; the others come from a
    band that holds for the whole curve at once. They hold at perfect calibration too, where those
    of a bootstrap do not, since noise alone makes an ICI above 0.

    **The test** is the likelihood ratio for independent rows of equal weight, as in R; otherwise
    the score test, whose covariance respects weights and clusters.

    **Predictions of exactly 0 or 1** have infinite log odds. Where they came true their likelihood
    is 1 on every line, and they leave intercept and slope as they are (R deletes them too); where
    they did not, no line explains them, which is an error. One label only, a constant prediction,
    and predictions that separate the labels leave no finite intercept or slope: errors too.

    **From a joint.** If predictions were rounded, the ends of O/E are moved outwards by the
    certified effect of that, and the p-value is raised by it. The ICI and its relatives have a
    value but no interval, intercept and slope have neither; ``note`` says why, and what to pass:
    the rows, or a joint of exact predictions.

    **Cost.** A sort and some thirty passes over the distinct predictions; lowess takes a hundred.

    Parameters
    ----------
    y_true : array-like of 0 and 1, or Joint
        A joint stands for labels, predictions and weights at once.
    y_prob : array-like in [0, 1]
        The predicted probability of label 1.
    smoother : "loess" or "lowess"
        The calibration curve. Up to three different predictions are not smoothed: the curve goes
        through the rates.
    confidence_level : float
        Of each interval by itself.
    n_resamples : int
        How often the curve's error is drawn.
    sample_weight : array-like, optional
        Weights count in all values. Windows of the smoother hold a share of the weight.
    pos_label : optional
        The value of ``y_true`` that counts as label 1, where labels are not 0 and 1.
    clusters : array-like, optional
        The cluster of each row, where rows are not independent, such as a hospital or a patient.
    rng : int, numpy.random.Generator or None
        The same rows give the same answer, in any order; None draws a fresh seed.

    Returns
    -------
    CalibrationSummary

    Warns
    -----
    UserWarning
        With fewer than ten rows of either label, or clusters that have one of it.

    References
    ----------
    Cox, "Two further applications of a model for binary regression", Biometrika 1958.
    Austin and Steyerberg, "The Integrated Calibration Index (ICI) and related metrics", Statistics
    in Medicine 2019.
    Van Calster et al., "A calibration hierarchy for risk models was defined", Journal of Clinical
    Epidemiology 2016.

    Examples
    --------
    >>> import caldist
    >>> demo = caldist.datasets.load_demo()
    >>> summary = caldist.clinical.calibration_summary(demo.y_true, demo.y_prob["random_forest"])
    >>> summary.intercept.lower < 0 < summary.intercept.upper, summary.slope.lower > 3
    (True, True)
    >>> summary.test.pvalue < 0.001, summary.ici.lower > 0.05
    (True, True)
    """
    validate.check_choice("smoother", smoother, ("loess", "lowess"))
    confidence_level = validate.check_fraction("confidence_level", confidence_level)
    resampler = Resampler.of(rng, n_resamples=n_resamples)
    rows = Rows.of(
        y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label, clusters=clusters
    )
    warn_if_few(units_of(rows))
    return summary_of(rows, smoother, confidence_level, resampler)


def summary_of(
    rows: Rows, smoother: SmootherName, confidence_level: float, resampler: Resampler
) -> CalibrationSummary:
    """Summarise rows that were checked."""
    joint, units = rows.joint, units_of(rows)
    if units.cluster is not None and units.effective_size()[0] == 1:
        raise InvalidInput(
            argument="clusters",
            reason="has the same value in every row, and one cluster says nothing about others",
            remedy="Leave clusters out if these rows are independent.",
        )
    mean, rate = means(joint)
    # The counts are let go before the curve needs memory.
    intercept, slope, test = _of_line(joint, units, confidence_level)
    curve = _Curve(units, smoother_of(smoother, *_support(joint), _row_number(joint, units)))
    return CalibrationSummary(
        intercept=intercept,
        slope=slope,
        test=test,
        observed_over_expected=ratio_of(joint, units, 1, confidence_level),
        **curve.estimates(joint, confidence_level, resampler),
        observed_rate=rate,
        mean_prediction=mean,
        n_rows=rows.n_rows,
        n_positives=rows.n_positives,
        confidence_level=confidence_level,
        smoother=smoother,
        rates=rates_of(rows, confidence_level),
    )


def _support(joint: Joint) -> tuple[Vector, Vector]:
    """Return the predictions that have mass, and their shares."""
    mass = (joint.mass0 + joint.mass1) / joint.total
    some = mass > 0
    return (joint.prediction, mass) if some.all() else (joint.prediction[some], mass[some])


def _row_number(joint: Joint, units: Units) -> int:
    return units.n_rows if joint.n_rows is None else joint.n_rows


# -- intercept, slope, observed over expected, Cox's test --------------------------------------


def _of_line(
    joint: Joint, units: Units, confidence_level: float
) -> tuple[Interval, Interval, CoxTest]:
    counts = Counts.of(joint)
    line = counts.line()
    test = _test(joint, units, counts, line)
    if joint.radius > 0:
        intercept, slope = (
            Interval(None, -math.inf, math.inf, confidence_level, measure=name, note=_LINE_ROUNDED)
            for name in _LINE
        )
        return intercept, slope, test
    log_odds, offset = logit(joint.prediction), counts.in_the_large()
    z = -normal_quantile((1 - confidence_level) / 2)
    of_offset = z * math.sqrt(variance_of_line(units, log_odds, offset, None))
    of_slope = z * math.sqrt(variance_of_line(units, log_odds, *line))
    intercept, slope = (
        Interval(value, value - error, value + error, confidence_level, "normal", measure=name)
        for name, value, error in zip(_LINE, (offset, line[1]), (of_offset, of_slope), strict=True)
    )
    return intercept, slope, test


def _test(joint: Joint, units: Units, counts: Counts, line: tuple[float, float]) -> CoxTest:
    if units.are_alike:
        method = "likelihood ratio"
        statistic = 2 * units.n_rows * counts.gain(*line)
    else:
        method, statistic = "score", score_test(units, logit(joint.prediction))
    statistic = max(0.0, statistic)
    pvalue = min(1.0, chi_squared_tail(statistic, 2) + drawing_error(joint))
    return CoxTest(statistic, pvalue, 2, method)


# -- the smooth curve ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Curve:
    """A smoother on units, and what follows from it."""

    units: Units
    smoother: Smoother

    def estimates(
        self, joint: Joint, confidence_level: float, resampler: Resampler
    ) -> dict[str, Interval]:
        """Return ICI, E50, E90 and Emax."""
        x, share = _support(joint)
        coefficient, covariances = self._sums(noise=joint.radius == 0)
        distance = np.empty(x.size)
        for block in _blocks(x.size):
            distance[block] = np.abs(self.smoother.curve(coefficient[:, None], x[block])[:, 0])
        n_rows = _row_number(joint, self.units)
        values = _summaries(distance, share, n_rows)
        if joint.radius > 0:
            return {
                name: Interval(
                    value, -math.inf, math.inf, confidence_level, measure=name, note=_CURVE_ROUNDED
                )
                for name, value in zip(_CURVE, values, strict=True)
            }
        points, at = _points(x, share)
        basis = self.smoother.curve(np.eye(coefficient.size), points)
        noise = self._noise(covariances, 1 - confidence_level, resampler, basis, at)
        here = basis @ coefficient
        # Frequencies are at least 0 and at most 1: the whole band is cut, and so is the curve.
        below, above = (np.clip(here + way * noise.band, -points, 1 - points) for way in (-1, 1))
        lower = _summaries(np.maximum(np.maximum(below, -above), 0.0), at, n_rows)
        upper = _summaries(np.maximum(-below, above), at, n_rows)
        cut_off = float(at @ np.abs(here - np.clip(here, -points, 1 - points)))
        lower[0] = max(0.0, values[0] - cut_off - noise.mean)
        most = dot(share, np.maximum(x, 1 - x))
        upper[0] = min(most, values[0] + noise.error((np.sign(here) * at) @ basis))
        return {
            name: Interval(
                value=value,
                lower=float(min(low, value)),
                upper=float(max(high, value)),
                confidence_level=confidence_level,
                method="resampling",
                n_resamples=resampler.n_resamples,
                measure=name,
            )
            for name, value, low, high in zip(_CURVE, values, lower, upper, strict=True)
        }

    def _sums(self, *, noise: bool) -> tuple[Vector, list[NDArray[np.float64]]]:
        """Return the coefficients and, if asked for, their covariances.

        The first is by the residuals seen, the second by what predictions make of them. Functions
        are worked out once.
        """
        units, size = self.units, self.smoother.place.size
        variances = []
        if noise:
            squares = () if units.cluster is not None else (_seen, _predicted)
            variances = [units.at_predictions(square(units)) for square in squares]
        coefficient = np.zeros(size)
        covariances = [np.zeros((size, size)) for _ in variances]
        for block in _blocks(units.prediction.size):
            part = self.smoother.functions(units.prediction[block])
            coefficient += gram(part, units.residual[None, block])[:, 0]
            for at, variance in enumerate(variances):
                covariances[at] += (part * variance[block]) @ part.T
        if noise and units.cluster is not None:
            covariances = [self._between_clusters()]
        return coefficient, covariances

    def _between_clusters(self) -> NDArray[np.float64]:
        """Return the covariance of the coefficients, of clusters as a whole."""
        units = self.units
        sums = [
            units.cluster_sums(
                units.share
                * units.error
                * self.smoother.function(at, units.prediction)[units.place]
            )
            for at in range(self.smoother.place.size)
        ]
        return np.asarray(np.array(sums) @ np.array(sums).T)

    def _noise(
        self,
        covariances: Sequence[NDArray[np.float64]],
        risk: float,
        resampler: Resampler,
        basis: NDArray[np.float64],
        share: Vector,
    ) -> _Noise:
        """Return the size of the curve's error, by residuals seen and by predictions."""
        variance = np.max([((basis @ part) * basis).sum(axis=1) for part in covariances], axis=0)
        deviation = np.sqrt(np.maximum(variance, 0.0))
        scaled = np.divide(
            basis, deviation[:, None], out=np.zeros_like(basis), where=deviation[:, None] > 0
        )
        widest, means = 0.0, 0.0
        for family, part in zip((_EMPIRICAL, _BY_PREDICTION), covariances, strict=False):
            size = np.trace(part) / part.shape[0]
            if size <= 0:
                continue
            factor = np.linalg.cholesky(part + 1e-10 * size * np.eye(part.shape[0]))
            drawn = factor @ resampler.stream(family).standard_normal(
                (part.shape[0], resampler.n_resamples)
            )
            largest = np.abs(scaled @ drawn).max(axis=0)
            widest = max(widest, float(order_statistic(largest, 1 - risk)))
            mean = share @ np.abs(basis @ drawn)
            means = max(means, float(order_statistic(mean, 1 - risk / 2)))
        z = -normal_quantile(risk / 2)

        def error(weights: Vector) -> float:
            return z * max(
                math.sqrt(max(0.0, float(weights @ part @ weights))) for part in covariances
            )

        return _Noise(widest * deviation, means, error)


@dataclass(frozen=True, eq=False)
class _Noise:
    """The curve's error: a band of all points at once, of its mean, of a mean with weights."""

    band: Vector
    mean: float
    error: Callable[[Vector], float]


def _seen(units: Units) -> Vector:
    """Return the squared residuals of the units, times the squared shares of their rows."""
    found = units.label - units.prediction[units.place]
    found **= 2
    found *= units.count * units.share**2
    return found


def _predicted(units: Units) -> Vector:
    """Return what predictions make of these squares."""
    v = units.prediction[units.place]
    found = 1 - v
    found *= v
    found *= units.count * units.share**2
    return found


def _blocks(size: int) -> list[slice]:
    return [slice(first, first + _BLOCK) for first in range(0, size, _BLOCK)]


def _points(x: Vector, share: Vector) -> tuple[Vector, Vector]:
    """Return at most some thousand predictions and the shares they stand for, the ends included."""
    if x.size <= 2 * _POINTS:
        return x, share
    cell = np.minimum((np.cumsum(share) * _POINTS).astype(np.int64), _POINTS - 1)
    starts = np.append(0, np.flatnonzero(np.diff(cell)) + 1)
    middle = (starts + np.append(starts[1:], x.size)) // 2
    shares = np.add.reduceat(share, starts)
    return np.concatenate((x[:1], x[middle], x[-1:])), np.concatenate(([0.0], shares, [0.0]))


def _summaries(distance: Vector, share: Vector, n_rows: int) -> list[float]:
    """Return mean, median, 90% quantile and maximum, as of rows that have these shares."""
    order = np.argsort(distance, kind="stable")
    rows = np.cumsum(share[order])
    rows *= n_rows
    ranked = distance[order]
    last = ranked.size - 1

    def at(row: float) -> float:
        return float(ranked[min(last, int(np.searchsorted(rows, row + 1 - 1e-6)))])

    quantiles = []
    for level in (0.5, 0.9):  # between the two nearest rows, as R's default
        place = (n_rows - 1) * level
        low = math.floor(place + 1e-9)
        part = place - low
        quantiles.append(at(low) if part < 1e-9 else (1 - part) * at(low) + part * at(low + 1))
    return [dot(share, distance), *quantiles, float(ranked[-1])]
