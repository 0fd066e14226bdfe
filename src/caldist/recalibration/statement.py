r"""Limits for how well a map calibrates, from the very rows that it was fitted to.

Notation: κ the map, as a table; Q_a the order statistic of replicates on the mapped predictions, δ
the risk, of which half goes to each end.

**For every n.** Put all outcomes on a line, label 1 by increasing prediction, then label 0. Every
function of the duals of smCE and ldCE has variation at most 2 on it, whatever the monotone map. So
for all monotone maps at once, however they were found, both are within 2D of their value on the
rows, D ≤ √(ln(2/δ)/2n) being the Kolmogorov distance of the empirical law (Dvoretzky, Kiefer,
Wolfowitz; Massart). A function that changes sign at each of k edges of bins has variation 2 + 2k.

**By replicates.** The functions (y - κ(v)) w(κ(v)) with κ monotone have bounded variation, so the
error at the fitted map is that at its limit, whose largest value random signs and drawn labels
show. The remainder is b, the covariance of the fit with its own labels (Efron): Σ κ(1 - κ)/n over
blocks of rows that move together, and over the parameters of the base. It counts once for each unit
of slope that a dual may have in κ: once for smCE, twice for ldCE, 2/ε times for bins of width ε.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from caldist._util.numbers import number, signed, signed_ends
from caldist._util.products import dot
from caldist._util.results import Result
from caldist._util.types import Integers, Vector
from caldist.data.joint import Joint
from caldist.data.rows import Rows
from caldist.errors import InvalidInput
from caldist.inference.intervals import Interval, chosen_method
from caldist.inference.limits import Limits, few_parts, normal_quantile
from caldist.inference.noise import noise_of, noise_of_labels
from caldist.inference.recipes import limits_of
from caldist.inference.resampling import Resampler
from caldist.inference.sample import FEW, FLIPS, LABELS, Units
from caldist.kernels.arrays import prefix_sums
from caldist.measures.corp import corp
from caldist.measures.lower_distance import TOLERANCE, lower_distance
from caldist.measures.norms import Norm
from caldist.measures.random_interval_ce import RandomIntervalNorm
from caldist.measures.smooth_ce import smooth_ce
from caldist.recalibration.calibration_map import CalibrationMap, mapped

_NARROW = 64.0  # cells to a bin
_WIDTHS = (4.0, 2.0, 1.0, 0.5)  # of bins for the distance, in units of n^(-1/3)


@dataclass(frozen=True)
class LossChange(Result):
    """A loss before and after recalibration, on rows that had no part in the fit.

    The change is that of the procedure: what a map changes on average that is fitted to four fifths
    of as many rows. A single map does somewhat better or worse.

    Attributes
    ----------
    before, after
        The mean loss of the predictions as they are, and mapped.
    change
        Their difference; negative where recalibration helps.
    lower, upper
        A normal confidence interval for the difference.
    """

    before: float
    after: float
    change: float
    lower: float
    upper: float

    def __str__(self) -> str:
        return (
            f"{number(self.before)} -> {number(self.after)} (change {signed(self.change)}, "
            f"interval {signed_ends(self.lower, self.upper)})"
        )


def why_none(units: Units, method: str) -> str:
    """Return why there are no limits for the population; empty if there are."""
    if method == "finite_sample":
        return ""
    if not (few := few_parts(units)):
        return ""
    return (
        f"only {few}, and with fewer than {FEW} no limit is dependable. "
        "method='finite_sample' holds for any number of independent rows."
    )


def refuse_unproved(units: Units, method: str) -> None:
    """Raise where the inequality for every n is not proved."""
    if method == "finite_sample" and not units.are_alike:
        raise InvalidInput(
            argument="method",
            value=method,
            reason="it is proved for independent rows of equal weight",
            remedy="Use method='resampling' with sample_weight or clusters.",
        )


def mapped_units(units: Units, table: CalibrationMap) -> Units:
    """Return the rows with mapped predictions; those that became equal share a place."""
    value = mapped(table, units.prediction)
    new = np.append(True, np.diff(value) > 0)
    prediction = value[new]
    place = (np.cumsum(new) - 1)[units.place]
    error = units.label - prediction[place]
    residual = _sums(place, units.mass * error, prediction.size)
    return replace(units, prediction=prediction, residual=residual, place=place)


def joint_of(units: Units) -> Joint:
    """Return the distribution of the rows, without their number."""
    ones = units.at_predictions(units.mass * units.label)
    zeros = units.at_predictions(units.mass * (1 - units.label))
    return Joint(units.prediction, zeros, ones)


def penalty(units: Units, value: Vector, starts: Vector | None, parameters: int) -> float:
    """Return b.

    ``value`` is the map at the predictions of the units, and ``starts`` the least prediction of
    each block; None where there are none.
    """
    spread = value * (1 - value)
    found = parameters * _squares(units, np.sqrt(spread)[units.place])
    if starts is None:
        return found
    block = np.maximum(np.searchsorted(starts, units.prediction, side="right") - 1, 0)
    own = block[units.place]
    mass = _sums(own, units.mass, starts.size)
    mean = _ratio(_sums(own, units.mass * value[units.place], starts.size), mass)
    if units.cluster is None:
        squares = _sums(own, units.count * units.share**2, starts.size)
    else:  # rows of one cluster count as if they were one
        key, part = np.unique(own * units.n_clusters + units.cluster, return_inverse=True)
        together = _sums(part, units.share, key.size)
        squares = _sums(key // units.n_clusters, together**2, starts.size)
    return found + float((mean * (1 - mean) * _ratio(squares, mass)).sum())


def _squares(units: Units, factor: Vector) -> float:
    """Return the sum of squares of the shares of independent parts, each row with a factor."""
    if units.cluster is None:
        return float((units.count * (units.share * factor) ** 2).sum())
    return float((units.cluster_sums(units.share * factor) ** 2).sum())


def _sums(place: Integers, values: Vector, size: int) -> Vector:
    return np.bincount(place, values, size).astype(np.float64)


def _ratio(above: Vector, below: Vector) -> Vector:
    return np.divide(above, below, out=np.zeros(below.size), where=below > 0)


# -- calibration ---------------------------------------------------------------------------------


def bounds_before(
    rows: Rows, risk: float, method: str, resampler: Resampler
) -> Mapping[str, Interval]:
    """Return limits for the predictions as they are."""
    method = "finite_sample" if method == "finite_sample" else chosen_method(rows, "auto")
    limits = Limits.of(rows, risk, resampler, method)
    radius = rows.joint.radius
    smooth = _cut(limits, "smooth_ce", *limits_of(smooth_ce, limits, rows.joint), radius)
    lowest = _cut(limits, "lower_distance", *limits_of(lower_distance, limits, rows.joint), radius)
    widths = _widths(limits)
    errors = [norm(limits.units.residual) for norm in widths]
    value = _cost(rows.joint, widths, errors)
    if method == "finite_sample":
        upper = _proved(limits, widths, errors) + radius
    else:
        upper = limits.distance(rows.joint)
    return MappingProxyType(
        {
            "smooth_ce": smooth,
            "lower_distance": lowest,
            "distance": _cut(limits, "distance", value, lowest.lower, upper, radius),
        }
    )


def bounds_after(
    after: Units,
    risk: float,
    method: str,
    resampler: Resampler,
    *,
    remainder: float,
    rounding: float,
) -> Mapping[str, Interval]:
    """Return limits for the mapped predictions, whatever the rows had to do with the map.

    ``remainder`` is b, ``rounding`` what rounded predictions may do.
    """
    limits = Limits(after, risk, resampler, method)
    norm, joint = smooth_ce.norm(after.prediction), joint_of(after)
    values = norm(after.residual), lower_distance(joint)
    coarse, moved = _on_few(after, limits.inverse_root_size)
    bins = replace(limits, units=coarse)
    widths = _widths(bins)
    errors = [width(coarse.residual) for width in widths]
    if method == "finite_sample":
        noise = lowest = math.sqrt(2 * limits.logarithm) * limits.inverse_root_size
        upper = _proved(bins, widths, errors)
    else:
        noise, lowest = _quantiles(limits, norm)
        noise, lowest = remainder + noise, 2 * remainder + lowest
        upper = _shown(bins, widths, errors, remainder)
    upper += moved
    value = _cost(joint, widths, errors) + moved
    smooth = _around(limits, "smooth_ce", values[0], noise + rounding, 0.0, rounding)
    lower = _around(limits, "lower_distance", values[1], lowest + rounding, TOLERANCE, rounding)
    upper += rounding
    return MappingProxyType(
        {
            "smooth_ce": smooth,
            "lower_distance": lower,
            "distance": _cut(limits, "distance", value, lower.lower, upper, rounding),
        }
    )


def _around(
    limits: Limits, measure: str, value: float, width: float, tolerance: float, rounding: float
) -> Interval:
    return _cut(limits, measure, value, value - width, value + tolerance + width, rounding)


def _cut(
    limits: Limits, measure: str, value: float, lower: float, upper: float, rounding: float
) -> Interval:
    """Return the interval within [0, 1]; ``rounding`` is 0 for exact predictions."""
    lower = min(1.0, max(0.0, float(lower)))
    draws = limits.resampler.n_resamples if limits.method == "resampling" else 0
    return Interval(
        value=float(value),
        lower=lower,
        upper=min(1.0, max(lower, float(upper))),
        confidence_level=1 - limits.risk,
        method=limits.method,
        n_resamples=draws,
        measure=measure,
        rounding=0.0 if rounding == 0 else None,
    )


def _quantiles(limits: Limits, norm: Norm) -> tuple[float, float]:
    """Return Q_{1 − δ/2} of the norm of noise, and of what noise does to ldCE.

    Each is the larger one of signs and of drawn labels, and both are of the same labels.
    """
    units = limits.units
    of_norm = limits.norm_quantile(norm, units.flip, FLIPS)
    if not units.draws_labels:
        return of_norm, limits.distance_noise
    of_distance = float(limits.quantile(noise_of(lower_distance, units, -math.inf)[FLIPS], FLIPS))

    def drawn(rng: np.random.Generator) -> tuple[float, float]:
        ones = units.draw(rng)
        return norm(ones), noise_of_labels(lower_distance, units, ones)

    found = limits.quantile(drawn, LABELS).tolist()
    return max(of_norm, found[0]), max(of_distance, found[1])


def _widths(limits: Limits) -> list[RandomIntervalNorm]:
    """Return bins of a few widths, which depend on the number of rows alone."""
    middle = limits.inverse_root_size ** (2 / 3)
    exponents = {max(0, round(-math.log2(min(1.0, factor * middle)))) for factor in _WIDTHS}
    return [RandomIntervalNorm(limits.units.prediction, width=2.0**-k) for k in sorted(exponents)]


def _cost(joint: Joint, norms: Sequence[RandomIntervalNorm], errors: Sequence[float]) -> float:
    """Return an upper bound of the distance of the rows: of bins, or of isotonic regression."""
    isotonic = corp(joint).curve_value
    mass = (joint.mass0 + joint.mass1) / joint.total
    moved = dot(mass, np.abs(joint.prediction - isotonic))
    bins = (error + norm.width / 2 for error, norm in zip(errors, norms, strict=True))
    return min(moved, *bins)


def _on_few(units: Units, root: float) -> tuple[Units, float]:
    """Return the rows at the middles of narrow cells, where there are fewer, and how far it moves.

    Bins need no more. The map and this rounding are monotone together.
    """
    bits = math.ceil(math.log2(_NARROW / root ** (2 / 3)))
    if units.prediction.size <= 2 * 2**bits:
        return units, 0.0
    cell = np.minimum((units.prediction * 2**bits).astype(np.int64), 2**bits - 1)
    new = np.append(True, np.diff(cell) > 0)
    prediction = (cell[new] + 0.5) / 2**bits
    place: Integers = (np.cumsum(new) - 1)[units.place]
    error = units.mass * (units.label - prediction[place])
    residual = _sums(place, error, prediction.size)
    coarse = replace(units, prediction=prediction, residual=residual, place=place)
    if units.are_alike:  # many rows to a unit
        key = place * 2 + units.label
        count = np.bincount(key, units.count, 2 * prediction.size).astype(np.int64)
        some = np.flatnonzero(count)
        coarse = replace(
            coarse,
            place=some // 2,
            label=some % 2,
            count=count[some],
            share=np.full(some.size, units.share[0]),
            mass=count[some] * units.share[0],
        )
    return coarse, 2.0 ** -(bits + 1)


def _proved(limits: Limits, norms: Sequence[RandomIntervalNorm], errors: Sequence[float]) -> float:
    """Return an upper limit of the distance that holds for all monotone maps at once."""
    distance = math.sqrt(limits.logarithm / 2) * limits.inverse_root_size
    return min(
        error + norm.width / 2 + (2 + 2 * math.ceil(1 / norm.width)) * distance
        for error, norm in zip(errors, norms, strict=True)
    )


def _shown(
    limits: Limits, norms: Sequence[RandomIntervalNorm], errors: Sequence[float], remainder: float
) -> float:
    """Return an upper limit of the distance by replicates, for all widths at once.

    Their quantile is one of the largest of all widths, each in units of its expected noise.
    """
    units = limits.units
    scale = np.array([norm.noise for norm in norms])

    def largest(masses: Vector) -> float:
        sums = prefix_sums(masses)
        return float((np.array([norm.of_sums(sums) for norm in norms]) / scale).max())

    noise = float(limits.quantile(lambda rng: largest(units.flip(rng)), FLIPS))
    if units.draws_labels:
        drawn = float(limits.quantile(lambda rng: largest(units.draw(rng)), LABELS))
        noise = max(noise, drawn)
    return min(
        error + noise * norm.noise + (0.5 * norm.width + 2 / norm.width * remainder)
        for error, norm in zip(errors, norms, strict=True)
    )


def rounding_of(joint: Joint, table: CalibrationMap) -> float:
    """Return what predictions that were rounded to cells may do to a bound of the mapped ones."""
    if joint.radius == 0:
        return 0.0
    if joint.grid is None:  # no prediction moves by more than the map is steep
        steepest = max(np.diff(table.y) / np.diff(table.x), default=0.0)
        return min(1.0, 2 * float(steepest) * joint.radius)
    low = joint.grid.cell * joint.grid.width
    high = np.minimum(low + joint.grid.width, 1.0)
    mass = (joint.mass0 + joint.mass1) / joint.total
    return 2 * dot(mass, mapped(table, high) - mapped(table, np.minimum(low, 1.0)))


# -- losses --------------------------------------------------------------------------------------


def losses(units: Units, after: Vector, risk: float) -> Mapping[str, LossChange]:
    """Return the losses before and after; ``after`` is what each unit's prediction becomes."""
    before = units.prediction[units.place]
    z = -normal_quantile(risk / 2)
    return MappingProxyType(
        {
            "brier_score": _change(units, before, after, _squared, z),
            "log_loss": _change(units, before, after, _logarithmic, z),
        }
    )


def _squared(label: Vector, p: Vector) -> Vector:
    return np.asarray((label - p) ** 2)


def _logarithmic(label: Vector, p: Vector) -> Vector:
    with np.errstate(divide="ignore"):
        return -np.log(np.where(label == 1, p, 1 - p))


def _change(
    units: Units,
    before: Vector,
    after: Vector,
    loss: Callable[[Vector, Vector], Vector],
    z: float,
) -> LossChange:
    label = units.label.astype(np.float64)
    first, second = loss(label, before), loss(label, after)
    old, new = dot(units.mass, first), dot(units.mass, second)
    if math.isinf(old) and math.isfinite(new):
        # A certain prediction failed: so it is in the population, but for a probability of 0.
        return LossChange(old, new, -math.inf, -math.inf, -math.inf)
    same = first == second
    difference = np.zeros(first.size)
    np.subtract(second, first, out=difference, where=~same)
    mean = dot(units.mass, difference)
    if not math.isfinite(mean):
        return LossChange(old, new, mean, mean, mean)
    error = z * units.standard_error(difference)
    return LossChange(old, new, mean, mean - error, mean + error)
