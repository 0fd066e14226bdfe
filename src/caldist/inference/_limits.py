r"""The recipes: from a sample to limits for the population's value.

Notation: T the value on the sample, c its residual masses, e = y − v, δ = 1 − confidence level, z_a
the normal quantile, Q_a the order statistic ⌈(B + 1)a⌉ of B replicates, σ̂² = E e².

- **Upper limits need no supremum.** With w₀ the population's witness, T_pop − T ≤ ⟨w₀, c_pop − c⟩,
  the error of one mean, whose standard error is at most σ/√n.
- **Lower limits do**: T − T_pop ≤ ‖c − c_pop‖. Two replicates stand for that norm: random signs of
  the residuals, and labels drawn from the predictions. The latter keep the limit honest when
  positives are rare, where few residuals are large and their signs say little.

Both hold at perfect calibration, where the plain bootstrap fails because T is far above 0 and every
replicate is farther still. The finite-sample limits use nothing but bounded residuals: T is within
McDiarmid's inequality of its mean on both sides, and its mean is not below T_pop, because T is
convex, nor above T_pop by more than E‖c − c_pop‖ ≤ noise/√n. With weights or clusters 1/n becomes
the sum of the squared shares of the independent parts.
"""

from __future__ import annotations

import heapq
import math
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from caldist._util.types import Vector
from caldist.data.joint import Joint
from caldist.data.units import FLIPS, LABELS, Units
from caldist.inference._resampling import Replicate, Resampler, order_rank, order_statistic
from caldist.kernels._arrays import prefix_sums
from caldist.measures._norm import Norm
from caldist.measures.lower_distance import lower_distance
from caldist.measures.random_interval_ce import RandomIntervalNorm, rounding_change

FEW = 10  # rows, or clusters, of a label below which no recipe is dependable


@dataclass(frozen=True)
class Limits:
    """What all limits of one interval are made from; without a resampler they are finite-sample."""

    units: Units
    risk: float  # δ
    resampler: Resampler | None

    @property
    def logarithm(self) -> float:
        """ln(2/δ): each limit may fail with probability δ/2."""
        return math.log(2 / self.risk)

    @property
    def root(self) -> float:
        """1/√n, n being the effective number of independent parts."""
        shares = self.units.part_shares()
        count = self.units.count if self.units.cluster is None else 1
        return math.sqrt(float((count * shares**2).sum()))

    @property
    def largest(self) -> float:
        """1/n, as the largest share of an independent part."""
        return self.units.largest_share

    @property
    def sigma(self) -> float:
        """σ̂/√n: above the standard error of every mean of e·w(v) with |w| ≤ 1."""
        absolute = self.units.share * np.abs(self.units.error)
        if self.units.cluster is None:
            return math.sqrt(float(self.units.count @ absolute**2))
        return math.sqrt(float((self.units.cluster_sums(absolute) ** 2).sum()))

    @cached_property
    def distance_noise(self) -> float:
        """By how much noise moves ldCE: the larger Q_{1 − δ/2} of its replicates."""
        noise = lower_distance.noise(self.units, -math.inf).items()
        return max(float(self.quantile(replicate, family)) for family, replicate in noise)

    def quantile(self, replicate: Replicate, family: int) -> Vector:
        """Return Q_{1 − δ/2} of a replicate."""
        assert self.resampler is not None  # noqa: S101 -- only called by the resampling recipes
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
        assert self.resampler is not None  # noqa: S101 -- only called by the resampling recipes
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

    def of_norm(self, norm: Norm) -> tuple[float, float, float]:
        """Return the value of a norm of the residual masses with its lower and upper limit."""
        units, log = self.units, self.logarithm
        value = norm(units.residual)
        if self.resampler is None:
            tail = norm.bound * math.sqrt(2 * log) * self.root
            # A norm is convex, so its mean over samples is not below the population's: only the
            # lower limit pays for the noise.
            return value, value - norm.noise * self.root - tail, value + tail
        spread = self.norm_quantile(norm, units.flip, FLIPS)
        # Labels drawn independently say nothing about clusters.
        calibrated = spread
        if units.cluster is None:
            calibrated = self.norm_quantile(norm, units.draw, LABELS)
        z = -normal_quantile(self.risk / 2)
        extra = norm.bound * log * self.largest / 3
        functions = norm.candidates(units.residual, calibrated)
        if functions is None:
            upper = value + z * norm.bound * self.sigma + extra
            if units.cluster is not None:  # σ̂ supposes the worst within clusters, the signs do not
                upper = min(upper, value + spread)
        else:
            upper = extra + max(
                abs(float(units.residual @ function)) + z * _standard_error(units, function)
                for function in functions
            )
        return value, value - max(spread, calibrated), upper

    def distance_lower(self, value: float) -> float:
        """Return the lower limit of ldCE, whose value on the sample is at least ``value``."""
        if self.resampler is None:
            return value - self.root - math.sqrt(2 * self.logarithm) * self.root
        return value - self.distance_noise

    def distance_upper(self, value: float) -> float:
        """Return the upper limit of ldCE, whose value on the sample is at most ``value``."""
        log = self.logarithm
        if self.resampler is None:
            return value + math.sqrt(2 * log) * self.root  # as a norm, ldCE is convex
        above = log * self.largest / 3 - normal_quantile(self.risk / 2) * self.sigma
        if self.units.cluster is not None:
            above = min(above, self.distance_noise)
        return value + above

    def of_mean(self, loss: Callable[[Vector, Vector], Vector]) -> float:
        """Return how far the population's mean of a loss between 0 and 1 may be on each side."""
        units, log = self.units, self.logarithm
        if self.resampler is None:
            return math.sqrt(log / 2) * self.root
        losses = loss(units.label.astype(np.float64), units.prediction[units.place])
        error = units.standard_error(losses)
        return log * self.largest / 3 - normal_quantile(self.risk / 2) * error

    def dyadic(self, joint: Joint) -> Dyadic:
        """Return the limits of RintCE over widths 1, 1/2, 1/4, …, for the rows behind a joint."""
        return Dyadic(self, partial(rounding_change, joint))


def normal_quantile(level: float) -> float:
    """Return z_a."""
    from statistics import NormalDist  # slow to import

    return NormalDist().inv_cdf(level)


def _standard_error(units: Units, function: Vector) -> float:
    """Return that of E[e·w(v)], and at least what calibrated labels would give."""
    w = function[units.place]
    found = units.standard_error(units.error * w)
    if units.cluster is not None:
        return found
    v = units.prediction[units.place]
    calibrated = float(units.count @ (units.share**2 * v * (1 - v) * w**2))
    return max(found, math.sqrt(calibrated))


@dataclass(frozen=True)
class Dyadic:
    """RintCE(ε) for ε = 1, 1/2, 1/4, … down to about 1/√n, and limits for min RintCE(ε) + cost·ε.

    ``rounding`` bounds what rounded predictions do to RintCE(ε).
    """

    limits: Limits
    rounding: Callable[[float], float]

    def _norms(self) -> list[RandomIntervalNorm]:
        finest = max(0, math.ceil(-math.log2(self.limits.root) - 1e-9))
        prediction = self.limits.units.prediction
        return [RandomIntervalNorm(prediction, width=2.0**-k) for k in range(finest + 1)]

    def lower(self, cost: float) -> float:
        """Return the lower limit.

        RintCE does not decrease as ε halves, so its limit at the least width holds for all finer
        ones.
        """
        limits, units, norms = self.limits, self.limits.units, self._norms()
        if limits.resampler is None:
            tail = math.sqrt(2 * self._logarithm(norms))
            noise = limits.root * (np.array([norm.noise for norm in norms]) + tail)
        else:
            noise = limits.quantile(lambda rng: _each(norms, units.flip(rng)), FLIPS)
            if units.cluster is None:
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
        if limits.resampler is None:
            log = self._logarithm(norms)
            return least + math.sqrt(2 * log) * limits.root
        return least - normal_quantile(limits.risk / (2 * len(norms))) * limits.sigma

    def _logarithm(self, norms: list[RandomIntervalNorm]) -> float:
        """ln(2/δ) for all widths at once."""
        return self.limits.logarithm + math.log(len(norms))


def _each(norms: list[RandomIntervalNorm], masses: Vector) -> list[float]:
    sums = prefix_sums(masses)
    return [norm.of_sums(sums) for norm in norms]


def few_in_words(units: Units) -> str:
    """Say why limits may hold less often than their level; nothing if they do not."""
    cluster = units.cluster
    if cluster is None:
        parts = "rows" if units.heaviest is None else "effective rows"
        total = units.n_rows
        counts = [int(units.count[units.label == k].sum()) for k in (0, 1)]
    else:  # only clusters are independent
        parts, total = "clusters", np.unique(cluster).size
        counts = [np.unique(cluster[units.label == k]).size for k in (0, 1)]
    few = [f"{counts[k]} of {total} {parts} have label {k}" for k in (1, 0) if counts[k] < FEW]
    if cluster is not None and total < FEW:
        few = [f"{total} clusters are given"]
    if not few:
        return ""
    return (
        f"only {' and '.join(few)}: with fewer than {FEW} a confidence interval may hold the "
        "population's value less often than its level says. Take it as a rough guide, or use "
        "method='finite_sample' where there is one."
    )


def warn_if_few(units: Units, stacklevel: int = 3) -> None:
    """Warn, by default as of the caller's caller, when limits may hold less often than they say."""
    if words := few_in_words(units):
        warnings.warn(words, UserWarning, stacklevel=stacklevel)
