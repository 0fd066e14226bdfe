"""Sums over pairs of rows for kCE: dense for any kernel, and the paper's random estimators.

All estimators work on the distribution, not on the rows, so they do not depend on the order of the
rows and weights need no special case.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from caldist._util.results import Result
from caldist._util.types import Vector
from caldist.data import validate
from caldist.data.joint import Joint
from caldist.errors import InvalidInput, answering

KernelFunction = Callable[[Vector, Vector], Any]

_FINEST = 1e-6  # for which a trillion draws are needed
_BLOCK = 1 << 20  # kernel values held at a time


@dataclass(frozen=True)
class KernelDraws(Result):
    """How many random draws make an estimate of kCE² precise; see :func:`kernel_ce_draws`."""

    n_terms: int
    n_features: int

    def __str__(self) -> str:
        return (
            f"{self.n_terms:,} terms for method='subsample', or {self.n_features:,} draws for "
            "'fourier' and 'binning'"
        )


@answering
def kernel_ce_draws(*, precision: float, confidence_level: float = 0.95) -> KernelDraws:
    """Return how many draws bring an estimate within ``precision`` of the exact kCE².

    With probability ``confidence_level``, by Hoeffding's inequality: a sub-sampled term lies in
    [-1, 1], a Fourier or binning draw in [0, 1].

    Examples
    --------
    >>> import caldist
    >>> caldist.kernel_ce_draws(precision=0.01)
    KernelDraws(n_terms=73778, n_features=18445)
    """
    precision = validate.check_fraction("precision", precision)
    if precision < _FINEST:
        reason = f"it must be at least {_FINEST}"
        raise InvalidInput(argument="precision", value=precision, reason=reason)
    level = validate.check_fraction("confidence_level", confidence_level)
    draws = math.log(2 / (1 - level)) / precision**2
    return KernelDraws(n_terms=math.ceil(2 * draws), n_features=math.ceil(draws / 2))


def evaluate_kernel(function: KernelFunction, u: Vector, v: Vector) -> Vector:
    """Call a user's kernel and check what comes back."""
    shape = np.broadcast_shapes(u.shape, v.shape)
    values = np.asarray(function(u, v))
    if values.shape != shape or values.dtype.kind not in "buif":
        raise InvalidInput(
            argument="kernel",
            reason=f"returned shape {values.shape} and dtype {values.dtype}, but called with "
            f"arrays that broadcast to {shape} it must return as many real numbers",
        )
    if not np.isfinite(values).all():
        at = np.unravel_index(int(np.argmin(np.isfinite(values))), shape)
        first, second = np.broadcast_to(u, shape)[at], np.broadcast_to(v, shape)[at]
        reason = f"returned {values[at]} at ({first}, {second}), which is not finite"
        raise InvalidInput(argument="kernel", reason=reason)
    return values.astype(np.float64, copy=False)


def dense(prediction: Vector, residual: Vector, function: KernelFunction) -> float:
    """Return sum_ij c_i c_j K(v_i, v_j) in blocks of bounded memory."""
    rows = max(1, _BLOCK // prediction.size)
    total = 0.0
    for start in range(0, prediction.size, rows):
        part = slice(start, start + rows)
        block = evaluate_kernel(function, prediction[part, None], prediction[None, :])
        total += float(residual[part] @ block @ residual)
    return total


def subsample(
    joint: Joint, function: KernelFunction, n_terms: int, rng: np.random.Generator
) -> float:
    """Average the product over ``n_terms`` random pairs, drawn with replacement."""
    cumulative = np.cumsum(np.concatenate((joint.mass0, joint.mass1)))
    support = joint.prediction.size

    def draw(count: int) -> tuple[Vector, Vector]:
        at = np.searchsorted(cumulative, rng.random(count) * cumulative[-1], side="right")
        at = np.minimum(at, cumulative.size - 1)
        v = joint.prediction[at % support]
        return v, (at >= support) - v

    total = 0.0
    for done in range(0, n_terms, _BLOCK):
        count = min(_BLOCK, n_terms - done)
        (u, first), (v, second) = draw(count), draw(count)
        total += float((first * second) @ evaluate_kernel(function, u, v))
    return total / n_terms


def fourier(
    joint: Joint, kernel: str, bandwidth: float, n_features: int, rng: np.random.Generator
) -> float:
    """Average |E[(y - v) e^{-i w v}]|² over random frequencies w, as K is their transform."""
    residual = joint.residual()
    total = 0.0
    for _ in range(n_features):
        if kernel == "laplace":
            frequency = rng.standard_cauchy() / bandwidth
        else:
            frequency = rng.standard_normal() * math.sqrt(2) / bandwidth
        angle = frequency * joint.prediction
        total += float(residual @ np.cos(angle)) ** 2 + float(residual @ np.sin(angle)) ** 2
    return total / n_features


def binning(joint: Joint, bandwidth: float, n_features: int, rng: np.random.Generator) -> float:
    """Average the sum of squared bin residuals over random widths and shifts.

    Two points share a bin of width Gamma(2, h) and uniform shift with probability e^{-|u - v|/h}.
    """
    residual = joint.residual()
    total = 0.0
    for _ in range(n_features):
        width = rng.gamma(2.0, bandwidth)
        bin_of = np.floor((joint.prediction + rng.uniform(0, width)) / width)
        first = np.flatnonzero(np.diff(bin_of, prepend=-1.0))
        total += float((np.add.reduceat(residual, first) ** 2).sum())
    return total / n_features
