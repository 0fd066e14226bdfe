"""The kernel calibration error, kCE."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caldist import _validate
from caldist._kernels import rkhs
from caldist.data.joint import Joint
from caldist.measures import _kernel_estimators as estimators

__all__ = ["kernel_ce", "kernel_ce_of"]

Vector = NDArray[np.float64]
KernelFunction = Callable[[Vector, Vector], Any]
Kernel = Literal["laplace", "gaussian"] | KernelFunction
Method = Literal["exact", "subsample", "fourier", "binning"]


def kernel_ce(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    kernel: Kernel = "laplace",
    bandwidth: float = 1.0,
    method: Method = "exact",
    squared: bool = False,
    unbiased: bool = False,
    n_terms: int | None = None,
    n_features: int = 1,
    sample_weight: ArrayLike | None = None,
    rng: _validate.Rng = None,
) -> float:
    r"""Return the kernel calibration error.

    .. math:: \mathrm{kCE}^2 = E[(y - v)(y' - v')\,K(v, v')]

    for two independent rows, with the Laplace kernel :math:`K = e^{-|v - v'|/h}`, the Gaussian
    kernel :math:`K = e^{-((v - v')/h)^2}` or one of your own. It is the largest correlation of the
    residuals with any function in the unit ball of the kernel's Hilbert space.

    **What it means.** With the Laplace kernel at bandwidth 1 it bounds the lower distance to
    calibration from both sides: :math:`\mathrm{smCE}/\sqrt2 \le \mathrm{kCE}` and
    :math:`\mathrm{kCE} \le \sqrt{2\,\mathrm{ldCE}}`. The Gaussian kernel has no such bound below:
    it can be exponentially small for predictions far from calibrated.

    **What it estimates.** The population's value, at rate 1/√n, with an upward bias that
    ``unbiased=True`` takes off the square.

    **Cost.** Laplace and Gaussian O(n log n), a sort and one pass, at any bandwidth. The Gaussian
    sum is exact to 1e-13 for bandwidths of at least 0.001; below, rounding grows like
    1e-16/bandwidth. A callable costs O(n²) time in blocks of bounded memory.

    Parameters
    ----------
    y_true : array-like of 0 and 1
    y_prob : array-like in [0, 1]
        The predicted probability of label 1.
    kernel : "laplace", "gaussian" or callable
        A callable K(u, v) takes two arrays that broadcast and returns the kernel's values; it must
        be symmetric and positive definite. The bandwidth is not passed on to it.
    bandwidth : float
        h above.
    method : "exact", "subsample", "fourier" or "binning"
        The exact sum, or one of the paper's unbiased estimators of the square: random pairs of
        rows; random Fourier features (Laplace and Gaussian); random bins (Laplace).
    squared : bool
        Return kCE², which may be negative for an estimate. Otherwise its root, 0 if negative.
    unbiased : bool
        The U-statistic: leave out the pairs of a row with itself. Only exact and without weights.
    n_terms : int, optional
        Pairs for "subsample"; by default the paper's 10 n.
    n_features : int
        Draws to average for "fourier" and "binning"; the paper makes one.
        :func:`caldist.kernel_ce_draws` gives both for a wanted precision.
    sample_weight : array-like, optional
    rng : int, numpy.random.Generator or None
        For the estimators.

    References
    ----------
    Kumar, Sarawagi and Jain, "Trainable calibration measures for neural networks from kernel mean
    embeddings", 2018. Błasiok, Gopalan, Hu and Nakkiran, "A Unifying Theory of Distance from
    Calibration", 2023, section 8.

    Examples
    --------
    >>> import caldist
    >>> round(caldist.kernel_ce([0, 1, 0, 1], [0.25, 0.5, 0.5, 0.75]), 12)
    0.055443477714
    """
    if not callable(kernel):
        _validate.check_choice("kernel", kernel, ("laplace", "gaussian"))
    bandwidth = _validate.check_positive("bandwidth", bandwidth)
    _validate.check_choice("method", method, ("exact", "subsample", "fourier", "binning"))
    squared = _validate.check_flag("squared", squared)
    unbiased = _validate.check_flag("unbiased", unbiased)
    if n_terms is not None:
        n_terms = _validate.check_count("n_terms", n_terms)
    n_features = _validate.check_count("n_features", n_features)
    generator = _validate.generator(rng)
    if unbiased:
        _check_unbiased(method, sample_weight)
    joint = Joint.from_arrays(y_true, y_prob, sample_weight=sample_weight)
    if method == "exact":
        return kernel_ce_of(
            joint, kernel=kernel, bandwidth=bandwidth, squared=squared, unbiased=unbiased
        )
    if method == "subsample":
        terms = 10 * (joint.n_rows or 1) if n_terms is None else n_terms
        value = estimators.subsample(joint, _function(kernel, bandwidth), terms, generator)
    elif method == "fourier":
        if callable(kernel):
            message = "method='fourier' knows the frequencies of 'laplace' and 'gaussian' only."
            raise ValueError(message)
        value = estimators.fourier(joint, kernel, bandwidth, n_features, generator)
    else:
        if kernel != "laplace":
            message = f"method='binning' is for kernel='laplace' only; kernel is {kernel!r}."
            raise ValueError(message)
        value = estimators.binning(joint, bandwidth, n_features, generator)
    return _finish(value, squared=squared)


def kernel_ce_of(
    joint: Joint,
    *,
    kernel: Kernel = "laplace",
    bandwidth: float = 1.0,
    squared: bool = False,
    unbiased: bool = False,
) -> float:
    """Return the exact kCE of a joint distribution."""
    residual = joint.residual()
    if kernel == "laplace":
        value = rkhs.laplace_squared(joint.prediction, residual, bandwidth)
    elif kernel == "gaussian":
        value = rkhs.gaussian_squared(joint.prediction, residual, bandwidth)
    else:
        value = estimators.dense(joint.prediction, residual, _function(kernel, bandwidth))
    if unbiased:
        value = _without_diagonal(joint, value, _function(kernel, bandwidth))
    return _finish(value, squared=squared)


def _finish(value: float, *, squared: bool) -> float:
    return float(value) if squared else math.sqrt(max(0.0, value))


def _function(kernel: Kernel, bandwidth: float) -> KernelFunction:
    if kernel == "laplace":
        return lambda u, v: np.exp(-np.abs(u - v) / bandwidth)
    if kernel == "gaussian":
        # Beyond 40 bandwidths the kernel is 0, and the square must not overflow.
        return lambda u, v: np.exp(-(np.minimum(np.abs(u - v) / bandwidth, 40.0) ** 2))
    return kernel


def _without_diagonal(joint: Joint, value: float, function: KernelFunction) -> float:
    """Return the U-statistic from the V-statistic ``value`` of unweighted rows."""
    n = joint.total
    if n < 2:
        message = "unbiased=True needs at least two rows; y_prob has 1."
        raise ValueError(message)
    v = joint.prediction
    own = joint.mass1 * (1 - v) ** 2 + joint.mass0 * v**2
    diagonal = estimators.evaluate_kernel(function, v, v)
    return float((n * n * value - own @ diagonal) / (n * (n - 1)))


def _check_unbiased(method: str, sample_weight: object) -> None:
    if method != "exact":
        message = f"unbiased=True goes with method='exact'; method is {method!r}."
        raise ValueError(message)
    if sample_weight is not None:
        message = (
            "unbiased=True is defined for rows of equal weight, but sample_weight was given: leave "
            "one of the two out."
        )
        raise ValueError(message)
