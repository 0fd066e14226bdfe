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
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from caldist._kernels import replicates
from caldist.inference._norms import Norm, RandomIntervalNorm, prefix_sums
from caldist.inference._resampling import (
    Replicate,
    Resampler,
    Sample,
    order_rank,
    order_statistic,
)

__all__ = [
    "FEW",
    "FLIPS",
    "LABELS",
    "Dyadic",
    "Limits",
    "brier_limits",
    "distance_lower",
    "distance_replicates",
    "distance_upper",
    "norm_limits",
    "normal_quantile",
    "warn_if_few",
]

Vector = NDArray[np.float64]

FEW = 10  # rows, or clusters, of a label below which no recipe is dependable

FLIPS, LABELS = 0, 1  # families of replicates: random signs, and labels drawn from predictions


@dataclass(frozen=True)
class Limits:
    """What all limits of one interval are made from; without a resampler they are finite-sample."""

    sample: Sample
    risk: float  # δ
    resampler: Resampler | None

    @property
    def logarithm(self) -> float:
        """ln(2/δ): each limit may fail with probability δ/2."""
        return math.log(2 / self.risk)

    @property
    def root(self) -> float:
        """1/√n, n being the effective number of independent parts."""
        shares = self.sample.group_shares()
        count = self.sample.count if self.sample.group is None else 1
        return math.sqrt(float((count * shares**2).sum()))

    @property
    def largest(self) -> float:
        """1/n, as the largest share of an independent part."""
        return float(self.sample.group_shares().max())

    @property
    def sigma(self) -> float:
        """σ̂/√n: above the standard error of every mean of e·w(v) with |w| ≤ 1."""
        absolute = self.sample.share * np.abs(self.sample.error)
        if self.sample.group is None:
            return math.sqrt(float(self.sample.count @ absolute**2))
        return math.sqrt(float((self.sample.group_sums(absolute) ** 2).sum()))

    @cached_property
    def distance_noise(self) -> float:
        """By how much noise moves ldCE: the larger Q_{1 − δ/2} of its replicates."""
        noise = distance_replicates(self.sample).items()
        return max(float(self.quantile(replicate, family)) for family, replicate in noise)

    def quantile(self, replicate: Replicate, family: int) -> Vector:
        """Return Q_{1 − δ/2} of a replicate."""
        assert self.resampler is not None  # noqa: S101 -- only called by the resampling recipes
        values = self.resampler.run(replicate, family=family, size=self.sample.n_rows)
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


def normal_quantile(level: float) -> float:
    """Return z_a."""
    from statistics import NormalDist  # slow to import

    return NormalDist().inv_cdf(level)


def norm_limits(limits: Limits, norm: Norm) -> tuple[float, float, float]:
    """Return the value of a norm of the residual masses with its lower and upper limit."""
    sample, log = limits.sample, limits.logarithm
    value = norm(sample.residual)
    if limits.resampler is None:
        tail = norm.bound * math.sqrt(2 * log) * limits.root
        # A norm is convex, so its mean over samples is not below the population's: only the lower
        # limit pays for the noise.
        return value, value - norm.noise * limits.root - tail, value + tail
    spread = limits.norm_quantile(norm, sample.flip, FLIPS)
    # Labels drawn independently say nothing about clusters.
    calibrated = spread
    if sample.group is None:
        calibrated = limits.norm_quantile(norm, sample.draw, LABELS)
    z = -normal_quantile(limits.risk / 2)
    extra = norm.bound * log * limits.largest / 3
    functions = norm.candidates(sample.residual, calibrated)
    if functions is None:
        upper = value + z * norm.bound * limits.sigma + extra
        if sample.group is not None:  # σ̂ supposes the worst within clusters, the signs do not
            upper = min(upper, value + spread)
    else:
        upper = extra + max(
            abs(float(sample.residual @ function)) + z * _standard_error(sample, function)
            for function in functions
        )
    return value, value - max(spread, calibrated), upper


def _standard_error(sample: Sample, function: Vector) -> float:
    """Return that of E[e·w(v)], and at least what calibrated labels would give."""
    w = function[sample.place]
    found = sample.standard_error(sample.error * w)
    if sample.group is not None:
        return found
    v = sample.prediction[sample.place]
    calibrated = float(sample.count @ (sample.share**2 * v * (1 - v) * w**2))
    return max(found, math.sqrt(calibrated))


def distance_lower(limits: Limits, value: float) -> float:
    """Return the lower limit of ldCE, whose value on the sample is at least ``value``.

    The optimal dual potentials are 1-Lipschitz and vanish at one end of [0, 1] each, so ldCE moves
    by at most the integral that ``label_deviation`` returns: no replicate needs a solver.
    """
    if limits.resampler is None:
        return value - limits.root - math.sqrt(2 * limits.logarithm) * limits.root
    return value - limits.distance_noise


def distance_upper(limits: Limits, value: float) -> float:
    """Return the upper limit of ldCE, whose value on the sample is at most ``value``."""
    log = limits.logarithm
    if limits.resampler is None:
        return value + math.sqrt(2 * log) * limits.root  # as a norm, ldCE is convex
    above = log * limits.largest / 3 - normal_quantile(limits.risk / 2) * limits.sigma
    if limits.sample.group is not None:
        above = min(above, limits.distance_noise)
    return value + above


def distance_replicates(sample: Sample) -> dict[int, Replicate]:
    """Return replicates of a bound on how far noise moves ldCE, by their families."""

    def flipped(rng: np.random.Generator) -> float:
        return float(replicates.label_deviation(sample.prediction, sample.flip_masses(rng)))

    def drawn(rng: np.random.Generator) -> float:
        ones = sample.draw(rng)  # more of label 1 than expected, and as many less of label 0
        return float(replicates.label_deviation(sample.prediction, np.concatenate((-ones, ones))))

    # Labels drawn independently say nothing about clusters.
    return {FLIPS: flipped, LABELS: drawn} if sample.group is None else {FLIPS: flipped}


@dataclass(frozen=True)
class Dyadic:
    """RintCE(ε) for ε = 1, 1/2, 1/4, … down to about 1/√n, and limits for min RintCE(ε) + cost·ε.

    ``rounding`` bounds what rounded predictions do to RintCE(ε).
    """

    limits: Limits
    rounding: Callable[[float], float]

    def _norms(self) -> list[RandomIntervalNorm]:
        finest = max(0, math.ceil(-math.log2(self.limits.root) - 1e-9))
        prediction = self.limits.sample.prediction
        return [RandomIntervalNorm(prediction, width=2.0**-k) for k in range(finest + 1)]

    def lower(self, cost: float) -> float:
        """Return the lower limit.

        RintCE does not decrease as ε halves, so its limit at the least width holds for all finer
        ones.
        """
        limits, sample, norms = self.limits, self.limits.sample, self._norms()
        if limits.resampler is None:
            tail = math.sqrt(2 * self._logarithm(norms))
            noise = limits.root * (np.array([norm.noise for norm in norms]) + tail)
        else:
            noise = limits.quantile(lambda rng: _each(norms, sample.flip(rng)), FLIPS)
            if sample.group is None:
                drawn = limits.quantile(lambda rng: _each(norms, sample.draw(rng)), LABELS)
                noise = np.maximum(noise, drawn)
        slack = np.array([self.rounding(norm.width) for norm in norms])
        least = np.maximum(0.0, np.array(_each(norms, sample.residual)) - noise - slack)
        full = least + cost * np.array([norm.width for norm in norms])
        return min(float(full.min()), float(least[-1]))

    def upper(self, cost: float) -> float:
        """Return the upper limit, which needs no replicates."""
        limits, norms = self.limits, self._norms()
        least = min(
            norm(limits.sample.residual) + self.rounding(norm.width) + cost * norm.width
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


def brier_limits(limits: Limits, value: float) -> tuple[float, float]:
    """Return limits for the Brier score, a mean of numbers between 0 and 1."""
    log = limits.logarithm
    if limits.resampler is None:
        half = math.sqrt(log / 2) * limits.root
    else:
        error = limits.sample.standard_error(limits.sample.error**2)
        half = log * limits.largest / 3 - normal_quantile(limits.risk / 2) * error
    return value - half, value + half


def warn_if_few(sample: Sample, stacklevel: int = 3) -> None:
    """Warn, by default as of the caller's caller, when limits may hold less often than they say."""
    group = sample.group
    if group is None:
        parts, total = "rows", sample.n_rows
        counts = [int(sample.count[sample.label == k].sum()) for k in (0, 1)]
    else:  # only clusters are independent
        parts, total = "clusters", np.unique(group).size
        counts = [np.unique(group[sample.label == k]).size for k in (0, 1)]
    few = [f"{counts[k]} of {total} {parts} have label {k}" for k in (1, 0) if counts[k] < FEW]
    if group is not None and total < FEW:
        few = [f"{total} clusters are given"]
    if few:
        warnings.warn(
            f"only {' and '.join(few)}: with fewer than {FEW} a confidence interval may hold the "
            "population's value less often than its level says. Take it as a rough guide, or use "
            "method='finite_sample' where there is one.",
            UserWarning,
            stacklevel=stacklevel,
        )
