"""The paper's random estimators of kCE and of SintCE; the measures themselves are exact.

They work on the distribution, not on the rows, so they do not depend on the order of the rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from caldist._util.results import Result
from caldist._util.types import Vector
from caldist.data import validate
from caldist.data.joint import Joint
from caldist.data.rows import Rows
from caldist.errors import InvalidInput, answering

Method = Literal["subsample", "fourier", "binning"]

_FINEST_DRAWS = 1e-6  # the precision for which a trillion draws are needed
_FINEST_SHIFTS = 1e-6  # the precision with which the bins of one shift still fit into memory
_CONFIDENCE = 0.95  # with which the default number of shifts reaches the precision
_BLOCK = 1 << 20  # kernel values, or bin edges, held at a time


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
    >>> from caldist.paper import kernel_ce_draws
    >>> kernel_ce_draws(precision=0.01)
    KernelDraws(n_terms=73778, n_features=18445)
    """
    precision = validate.check_fraction("precision", precision)
    if precision < _FINEST_DRAWS:
        reason = f"it must be at least {_FINEST_DRAWS}"
        raise InvalidInput(argument="precision", value=precision, reason=reason)
    level = validate.check_fraction("confidence_level", confidence_level)
    draws = math.log(2 / (1 - level)) / precision**2
    return KernelDraws(n_terms=math.ceil(2 * draws), n_features=math.ceil(draws / 2))


@answering
def estimate_kernel_ce(
    y_true: ArrayLike | Joint,
    y_prob: ArrayLike | None = None,
    *,
    method: Method = "subsample",
    n_terms: int | None = None,
    n_features: int | None = None,
    squared: bool = False,
    rng: validate.Rng = 0,
) -> float:
    """Estimate the kernel calibration error with the Laplace kernel of bandwidth 1, at random.

    :func:`caldist.kernel_ce` is the exact value, and takes no longer.

    Parameters
    ----------
    y_true : array-like of 0 and 1, or Joint
        A joint stands for labels, predictions and weights at once.
    y_prob : array-like in [0, 1]
        The predicted probability of label 1.
    method : "subsample", "fourier" or "binning"
        One of the paper's unbiased estimators of the square (section 8): random pairs of rows;
        random Fourier features; random bins.
    n_terms : int, optional
        Only for "subsample": pairs; by default the paper's 10 n.
    n_features : int, optional
        Only for "fourier" and "binning": draws to average; by default one, as in the paper.
        :func:`kernel_ce_draws` gives both for a wanted precision.
    squared : bool
        Return kCE², whose estimate may be negative. Otherwise its root, 0 if negative.
    rng : int, numpy.random.Generator or None
        None draws a fresh seed.

    Examples
    --------
    >>> from caldist.paper import estimate_kernel_ce
    >>> y_true, y_prob = [0, 1, 0, 1], [0.25, 0.5, 0.5, 0.75]
    >>> round(estimate_kernel_ce(y_true, y_prob, method="binning", n_features=10_000), 2)
    0.06
    """
    validate.check_choice("method", method, ("subsample", "fourier", "binning"))
    if n_terms is not None:
        n_terms = validate.check_count("n_terms", n_terms)
        validate.check_goes_with("n_terms", n_terms, "method", method, ("subsample",))
    if n_features is not None:
        n_features = validate.check_count("n_features", n_features)
        validate.check_goes_with("n_features", n_features, "method", method, ("fourier", "binning"))
    squared = validate.check_flag("squared", squared)
    generator, joint = validate.generator(rng), Rows.of(y_true, y_prob).joint
    if method == "subsample":
        value = _subsample(joint, n_terms or 10 * (joint.n_rows or 1), generator)
    elif method == "fourier":
        value = _fourier(joint, n_features or 1, generator)
    else:
        value = _binning(joint, n_features or 1, generator)
    return value if squared else math.sqrt(max(0.0, value))


def _subsample(joint: Joint, n_terms: int, rng: np.random.Generator) -> float:
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
        total += float((first * second) @ np.exp(-np.abs(u - v)))
    return total / n_terms


def _fourier(joint: Joint, n_features: int, rng: np.random.Generator) -> float:
    """Average |E[(y - v) e^{-i w v}]|² over random frequencies w, as the kernel is their transform.

    Those of the Laplace kernel follow the Cauchy law.
    """
    residual = joint.residual()
    total = 0.0
    for _ in range(n_features):
        angle = rng.standard_cauchy() * joint.prediction
        total += float(residual @ np.cos(angle)) ** 2 + float(residual @ np.sin(angle)) ** 2
    return total / n_features


def _binning(joint: Joint, n_features: int, rng: np.random.Generator) -> float:
    """Average the sum of squared bin residuals over random widths and shifts.

    Two points share a bin of width Gamma(2, 1) and uniform shift with probability e^{-|u - v|}.
    """
    residual = joint.residual()
    total = 0.0
    for _ in range(n_features):
        width = rng.gamma(2.0)
        bin_of = np.floor((joint.prediction + rng.uniform(0, width)) / width)
        first = np.flatnonzero(np.diff(bin_of, prepend=-1.0))
        total += float((np.add.reduceat(residual, first) ** 2).sum())
    return total / n_features


@answering
def estimate_surrogate_interval_ce(
    y_true: ArrayLike | Joint,
    y_prob: ArrayLike | None = None,
    *,
    precision: float = 0.01,
    n_shifts: int | None = None,
    rng: validate.Rng = 0,
) -> float:
    """Estimate the surrogate interval calibration error with random shifts of the bins.

    It is the minimum of RintCE(2^-k) + 2^-k over k ≤ k*, where precision/4 < 2^-k* ≤ precision/2,
    with averages over random shifts in place of RintCE. :func:`caldist.surrogate_interval_ce` is
    the exact value, and faster.

    Parameters
    ----------
    y_true : array-like of 0 and 1, or Joint
        A joint stands for labels, predictions and weights at once.
    y_prob : array-like in [0, 1]
        The predicted probability of label 1.
    precision : float
        How close to the exact value the estimate shall come.
    n_shifts : int, optional
        Random shifts per k. By default as many as make the result correct to ``precision`` with
        probability 0.95, by Hoeffding's inequality.
    rng : int, numpy.random.Generator or None
        None draws a fresh seed.

    Examples
    --------
    >>> from caldist.paper import estimate_surrogate_interval_ce
    >>> round(estimate_surrogate_interval_ce([0, 1, 0, 1], [0.25, 0.5, 0.5, 0.75]), 2)
    0.13
    """
    precision = validate.check_fraction("precision", precision)
    if precision < _FINEST_SHIFTS:
        reason = f"it must be at least {_FINEST_SHIFTS}"
        raise InvalidInput(argument="precision", value=precision, reason=reason)
    if n_shifts is not None:
        n_shifts = validate.check_count("n_shifts", n_shifts)
    generator, residuals = validate.generator(rng), Rows.of(y_true, y_prob).residuals
    finest = math.ceil(math.log2(2 / precision))
    sums = residuals.sums()
    if n_shifts is None:
        # Each average lies in [0, ECE] and has to come within precision/2 of its mean.
        spread = residuals.absolute() / (precision / 2)  # of ECE
        tails = 2 * (finest + 1) / (1 - _CONFIDENCE)
        n_shifts = max(1, math.ceil(math.log(tails) * spread**2 / 2))
    return min(
        _mean_over_shifts(residuals.prediction, sums, 2.0**-k, n_shifts, generator) + 2.0**-k
        for k in range(finest + 1)
    )


def _mean_over_shifts(
    prediction: Vector, sums: Vector, width: float, n_shifts: int, rng: np.random.Generator
) -> float:
    """Average the binned ECE over random shifts of bins of one width."""
    start = np.arange(-1, math.ceil(1 / width) + 2) * width  # beyond 1 for every shift
    rows = max(1, _BLOCK // start.size)
    total = 0.0
    for done in range(0, n_shifts, rows):
        shift = rng.uniform(0, width, size=min(rows, n_shifts - done))
        first = np.searchsorted(prediction, shift[:, None] + start)
        total += float(np.abs(np.diff(sums[first], axis=1)).sum())
    return total / n_shifts
