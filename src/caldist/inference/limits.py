r"""The recipes: from a sample to limits for the population's value.

Notation: T the value on the sample, c its residual masses, e = y − v, δ = 1 − confidence level, z_a
the normal quantile, Q_a the order statistic ⌈(B + 1)a⌉ of B replicates, σ̂² = E e².

- **Upper limits need no supremum.** With w₀ the population's witness, T_pop − T ≤ ⟨w₀, c_pop − c⟩,
  the error of one mean, whose standard error is at most σ/√n.
- **Lower limits do**: T − T_pop ≤ ‖c − c_pop‖. Two replicates stand for that norm: random signs of
  the residuals, and labels drawn from the predictions. The latter keep the limit honest when
  positives are rare, where few residuals are large and their signs say little.
- **Unless the witness comes from other rows**: its mean over rows that had no part in it is at most
  T_pop on average, whatever it is (:mod:`caldist.inference.cross_fit`). That needs no replicates,
  and where predictions are far from calibrated it is the better one of the two.

All hold at perfect calibration, where the plain bootstrap fails because T is far above 0 and every
replicate is farther still. The finite-sample limits use nothing but bounded residuals: T is within
McDiarmid's inequality of its mean on both sides, and its mean is not below T_pop, because T is
convex, nor above T_pop by more than E‖c − c_pop‖ ≤ noise/√n. With weights or clusters 1/n becomes
the sum of the squared shares of the independent parts. For smCE and ldCE of independent rows of
equal weight the noise is not paid for: put all outcomes on a line, label 1 by increasing
prediction, then label 0; every function of their duals has variation at most 2 on it, so both are
off by at most 2 D, D the Kolmogorov distance of the empirical law, and D ≤ √(ln(2/δ)/2n) with
probability 1 − δ (Dvoretzky, Kiefer, Wolfowitz; Massart).
"""

from __future__ import annotations

import heapq
import math
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np

from caldist._util.cached import cached_property
from caldist._util.types import Vector
from caldist._util.warning import warn
from caldist.data.joint import Joint
from caldist.data.rows import Rows
from caldist.inference.cells import Cells, cells_of
from caldist.inference.cross_fit import split_mean
from caldist.inference.folds import Folds, deal, ordered_units
from caldist.inference.noise import noise_of
from caldist.inference.resampling import Replicate, Resampler, order_rank, order_statistic
from caldist.inference.sample import FEW, FLIPS, LABELS, Units
from caldist.kernels.arrays import prefix_sums
from caldist.measures.base import Measure
from caldist.measures.lower_distance import lower_distance
from caldist.measures.norms import Norm
from caldist.measures.random_interval_ce import RandomIntervalNorm, rounding_change

DEALING = 7  # the random stream of it
_LEAST = 1e-12  # p-values below this say nothing more


@dataclass(frozen=True)
class Limits:
    """What all limits of one interval are made from.

    ``method`` is "resampling", "cross_fit" (no replicates) or "finite_sample".
    """

    units: Units
    risk: float  # δ
    resampler: Resampler
    method: str = "resampling"

    @classmethod
    def of(cls, rows: Rows, risk: float, resampler: Resampler, method: str) -> Limits:
        """Return those of rows: one for all statements that ask the same, with what it has made."""
        draws = resampler.n_resamples if method == "resampling" else 0
        key = cls, risk, method, resampler.entropy, draws
        if key not in rows.cache:
            rows.cache[key] = cls(ordered_units(rows), risk, resampler, method)
        return cast("Limits", rows.cache[key])

    @property
    def logarithm(self) -> float:
        """ln(2/δ): each limit may fail with probability δ/2."""
        return math.log(2 / self.risk)

    @property
    def inverse_root_size(self) -> float:
        """1/√n, n being the effective number of independent parts."""
        shares = self.units.part_shares()
        count = self.units.count if self.units.cluster is None else 1
        return math.sqrt(float((count * shares**2).sum()))

    @property
    def largest_share(self) -> float:
        """1/n, as the largest share of what comes at once."""
        return self.units.largest_share

    @property
    def standard_error(self) -> float:
        """σ̂/√n: above the standard error of every mean of e·w(v) with |w| ≤ 1."""
        return self.units.largest_error

    @cached_property
    def distance_noise(self) -> float:
        """By how much noise moves ldCE: the larger Q_{1 − δ/2} of its replicates, or a bound."""
        if self.method != "resampling":
            return (1 + math.sqrt(2 * self.logarithm)) * self.inverse_root_size
        noise = noise_of(lower_distance, self.units, -math.inf).items()
        return max(float(self.quantile(replicate, family)) for family, replicate in noise)

    def quantile(self, replicate: Replicate, family: int) -> Vector:
        """Return Q_{1 − δ/2} of a replicate."""
        values = self.resampler.run(replicate, family=family, size=self.units.n_rows)
        return np.asarray(order_statistic(values, 1 - self.risk / 2))

    def norm_quantile(
        self, norm: Norm, draw: Callable[[np.random.Generator], Vector], family: int
    ) -> float:
        """Return Q_{1 − δ/2} of the norm of drawn masses.

        Only the largest values decide. The least of as many as decide, found so far, is never above
        the quantile, so a replicate that is certainly below it need not be known exactly: which
        ones are, depends on the threads, but the quantile does not.
        """
        rank = order_rank(self.resampler.n_resamples, 1 - self.risk / 2)
        deciding = self.resampler.n_resamples - rank + 1
        largest: list[float] = []
        lock = threading.Lock()

        def replicate(rng: np.random.Generator) -> float:
            masses = draw(rng)
            with lock:
                threshold = largest[0] if len(largest) == deciding else -math.inf
            value = norm.unless_below(masses, threshold)
            if value > threshold:
                with lock:
                    if len(largest) < deciding:
                        heapq.heappush(largest, value)
                    else:
                        heapq.heappushpop(largest, value)
            return value

        return float(self.quantile(replicate, family))

    @property
    def z(self) -> float:
        """z_{1 − δ/2}."""
        return -normal_quantile(self.risk / 2)

    @property
    def finite_sample_term(self) -> float:
        """What rare labels add to the error of a mean of terms between −1 and 1."""
        return self.logarithm * self.largest_share / 3

    @cached_property
    def folds(self) -> Folds:
        """The rows in folds, the same for all measures."""
        return deal(self.units, self.resampler.stream(DEALING))

    @cached_property
    def cells(self) -> Cells:
        """The predictions in cells."""
        return cells_of(self.units)

    @cached_property
    def _split_means(self) -> dict[Measure[Any], tuple[float, float]]:
        return {}

    def _split_mean(self, measure: Measure[Any]) -> tuple[float, float]:
        """Return the mean of a measure's duals over rows that had no part in them; its error."""
        if measure not in self._split_means:
            self._split_means[measure] = split_mean(measure, self.folds, self.cells.rate)
        return self._split_means[measure]

    def split_lower(self, measure: Measure[Any], bound: float = 1.0) -> float:
        """Return the lower limit by splitting; ``bound`` is the largest value of a dual."""
        mean, error = self._split_mean(measure)
        return mean - self.z * error - bound * self.finite_sample_term

    def split_pvalue(self, measure: Measure[Any], floor: float) -> float:
        """Return the least risk at which the lower limit by splitting reaches ``floor``.

        It is 1 unless that is below one half, where limits begin to lie on their own side.
        """
        mean, error = self._split_mean(measure)
        bound = measure.norm(self.units.prediction).bound if measure.is_norm else 1.0
        finite_sample_term = bound * self.largest_share / 3

        def reaches(risk: float) -> bool:
            return (
                mean + normal_quantile(risk) * error + finite_sample_term * math.log(risk) >= floor
            )

        low, high = 0.0, 0.5
        if not reaches(high):
            return 1.0
        while low < (middle := (low + high) / 2) < high and high > _LEAST:
            low, high = (low, middle) if reaches(middle) else (middle, high)
        return high

    def of_norm(self, measure: Measure[Any]) -> tuple[float, float, float]:
        """Return the value of a norm of the residual masses with its lower and upper limit."""
        units, norm = self.units, measure.norm(self.units.prediction)
        value = norm(units.residual)
        if self.method == "finite_sample":
            tail = norm.bound * math.sqrt(2 * self.logarithm) * self.inverse_root_size
            worst = measure.facts.worst
            free = worst is not None and worst.bias == 0 and units.are_alike
            # A norm is convex, so its mean over samples is not below the population's: only the
            # lower limit pays for the noise, if any does.
            return (
                value,
                value - (0.0 if free else norm.noise * self.inverse_root_size) - tail,
                value + tail,
            )
        lower = self.split_lower(measure, norm.bound)
        # Without replicates: the mean of the noise, and by how much its quantile is above that.
        calibrated, spread = (norm.noise + self.z * norm.bound) * self.standard_error, math.inf
        if self.method == "resampling":
            calibrated = spread = self.norm_quantile(norm, units.flip, FLIPS)
            if units.draws_labels:
                calibrated = self.norm_quantile(norm, units.draw, LABELS)
            lower = max(lower, value - max(spread, calibrated))
        functions = norm.candidates(units.residual, calibrated)
        if functions is None:
            upper = value + norm.bound * (self.z * self.standard_error + self.finite_sample_term)
            if units.cluster is not None:  # σ̂ supposes the worst within clusters, the signs do not
                upper = min(upper, value + max(spread, calibrated))
        else:
            upper = norm.bound * self.finite_sample_term + max(
                abs(float((units.residual * function).sum()))
                + self.z * self._standard_error(units.error, function)
                for function in functions
            )
        return value, lower, upper

    def _standard_error(self, factor: Vector, function: Vector) -> float:
        """Return that of the mean of a function times a factor of each row.

        It is at least what labels of the frequency near each prediction would give, the factor
        changing by 1 between them.
        """
        units, w = self.units, function[self.units.place]
        found = units.standard_error(factor * w)
        return max(found, units.label_error(w, self.cells.rate)) if units.draws_labels else found

    def distance_lower(self, value: float) -> float:
        """Return the lower limit of ldCE, whose value on the sample is at least ``value``."""
        if self.method == "finite_sample":
            noise = 0.0 if self.units.are_alike else self.inverse_root_size
            return value - noise - math.sqrt(2 * self.logarithm) * self.inverse_root_size
        lower = self.split_lower(lower_distance)
        return max(lower, value - self.distance_noise) if self.method == "resampling" else lower

    def distance_upper(self, joint: Joint, value: float) -> float:
        """Return the upper limit of ldCE, whose value on the sample is at most ``value``."""
        if self.method == "finite_sample":
            return (
                value + math.sqrt(2 * self.logarithm) * self.inverse_root_size
            )  # as a norm, ldCE is convex
        above = self.finite_sample_term + self.z * self.standard_error
        if self.units.cluster is not None and self.method == "resampling":
            above = min(above, self.distance_noise)
        if value > 2 * self.distance_noise:  # it stands out, and with it the dual
            zero, one = lower_distance.dual(joint.prediction, *joint.normalized())
            own = np.where(self.units.label == 1, one[self.units.place], zero[self.units.place])
            error = self.units.standard_error(own)
            if self.units.draws_labels:
                error = max(error, self._standard_error(np.zeros(own.size), one - zero))
            above = min(above, self.finite_sample_term + self.z * error)
        return value + above

    def distance(self, joint: Joint) -> float:
        """Return the upper limit of the distance to calibration itself."""
        return self._cost + joint.radius

    @cached_property
    def _cost(self) -> float:
        return self.cells.upper(self.risk / 2, self.z, self.folds)

    def of_mean(self, loss: Callable[[Vector, Vector], Vector]) -> float:
        """Return how far the population's mean of a loss between 0 and 1 may be on each side."""
        units = self.units
        if self.method == "finite_sample":
            return math.sqrt(self.logarithm / 2) * self.inverse_root_size
        losses = loss(units.label.astype(np.float64), units.prediction[units.place])
        return self.finite_sample_term + self.z * units.standard_error(losses)

    def dyadic(self, joint: Joint) -> Dyadic:
        """Return the limits of RintCE over widths 1, 1/2, 1/4, …, for the rows behind a joint."""
        return Dyadic(self, partial(rounding_change, joint))


def normal_quantile(level: float) -> float:
    """Return z_a."""
    from statistics import NormalDist  # slow to import

    return NormalDist().inv_cdf(level)


@dataclass(frozen=True)
class Dyadic:
    """RintCE(ε) for ε = 1, 1/2, 1/4, … down to about 1/√n, and limits for min RintCE(ε) + cost·ε.

    ``rounding`` bounds what rounded predictions do to RintCE(ε).
    """

    limits: Limits
    rounding: Callable[[float], float]

    def _norms(self) -> list[RandomIntervalNorm]:
        finest = max(0, math.ceil(-math.log2(self.limits.inverse_root_size) - 1e-9))
        prediction = self.limits.units.prediction
        return [RandomIntervalNorm(prediction, width=2.0**-k) for k in range(finest + 1)]

    def lower(self, cost: float) -> float:
        """Return the lower limit.

        RintCE does not decrease as ε halves, so its limit at the least width holds for all finer
        ones.
        """
        limits, units, norms = self.limits, self.limits.units, self._norms()
        if limits.method == "finite_sample":
            tail = math.sqrt(2 * self._logarithm(norms))
            noise = limits.inverse_root_size * (np.array([norm.noise for norm in norms]) + tail)
        else:
            noise = limits.quantile(lambda rng: _each(norms, units.flip(rng)), FLIPS)
            if units.draws_labels:
                drawn = limits.quantile(lambda rng: _each(norms, units.draw(rng)), LABELS)
                noise = np.maximum(noise, drawn)
        slack = np.array([self.rounding(norm.width) for norm in norms])
        least = np.maximum(0.0, np.array(_each(norms, units.residual)) - noise - slack)
        full = least + cost * np.array([norm.width for norm in norms])
        return min(float(full.min()), float(least[-1]))

    def upper(self, cost: float) -> float:
        """Return the upper limit, which needs no replicates."""
        limits, norms = self.limits, self._norms()
        least = min(
            norm(limits.units.residual) + self.rounding(norm.width) + cost * norm.width
            for norm in norms
        )
        if limits.method == "finite_sample":
            log = self._logarithm(norms)
            return least + math.sqrt(2 * log) * limits.inverse_root_size
        return least - normal_quantile(limits.risk / (2 * len(norms))) * limits.standard_error

    def _logarithm(self, norms: list[RandomIntervalNorm]) -> float:
        """ln(2/δ) for all widths at once."""
        return self.limits.logarithm + math.log(len(norms))


def _each(norms: list[RandomIntervalNorm], masses: Vector) -> list[float]:
    sums = prefix_sums(masses)
    return [norm.of_sums(sums) for norm in norms]


def few_in_words(units: Units) -> str:
    """Say why limits may hold less often than their level; nothing if they do not."""
    few = few_parts(units)
    return few and (
        f"only {few}: with fewer than {FEW} a confidence interval may hold the population's value "
        "less often than its level says. Take it as a rough guide, or use method='finite_sample' "
        "where there is one."
    )


def few_parts(units: Units) -> str:
    """Say of which label there are too few rows or clusters; nothing if of none.

    Unequal ones count for as many equal ones as say as much.
    """
    total, effective_total = units.effective_size()
    if units.cluster is not None and effective_total < FEW:
        given = "1 cluster is" if total == 1 else f"{total} clusters are"
        return f"{given} given{effective_size_in_words(total, effective_total)}"
    parts = "clusters"
    if units.cluster is None:
        parts = "rows" if units.heaviest is None else "effective rows"
    each = {label: units.effective_size(label) for label in (1, 0)}
    return " and ".join(
        f"{number} of {total} {parts} have label {label}{effective_size_in_words(number, size)}"
        for label, (number, size) in each.items()
        if size < FEW
    )


def effective_size_in_words(number: int, effective_size: float) -> str:
    """Say what unequal parts are worth."""
    return "" if effective_size > number - 0.05 else f", worth {effective_size:.1f} equal ones"


def warn_if_few(units: Units) -> None:
    """Warn when limits may hold less often than they say."""
    if words := few_in_words(units):
        warn(words)
