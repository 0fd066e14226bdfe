"""The kernel calibration error, kCE."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from caldist._util.products import dot
from caldist._util.types import Vector
from caldist.data import validate
from caldist.data.joint import Joint
from caldist.data.residuals import Residuals
from caldist.data.rows import Rows
from caldist.errors import InvalidInput
from caldist.kernels.loader import gaussian, laplace
from caldist.measures import _second_order
from caldist.measures._counted_rows import counted_joint
from caldist.measures._passes import laplace_squared
from caldist.measures._rounding import around, better_of, moves_in_cells, residual_rounding
from caldist.measures.base import Worst, measure
from caldist.measures.norms import Norm

KernelFunction = Callable[[Vector, Vector], Any]
Kernel = Literal["laplace", "gaussian"] | KernelFunction

_BLOCK = 1 << 20  # kernel values held at a time
_OF_NORM = {"squared": False, "unbiased": False}  # options with which kCE is a norm
_PROVED = {"kernel": "laplace", "bandwidth": 1.0, **_OF_NORM}  # the effect of rounding


class KernelNorm(Norm):
    """kCE: the unit ball of the Hilbert space of the Laplace or the Gaussian kernel."""

    noise = 1.0

    def __init__(
        self, prediction: Vector, *, kernel: str = "laplace", bandwidth: float = 1.0, **others: Any
    ) -> None:
        super().__init__(prediction)
        for name, value in others.items():
            if value != _OF_NORM[name]:
                reason = "with it kernel_ce is not the norm that this needs"
                remedy = "Leave it out here."
                raise InvalidInput(argument=name, value=value, reason=reason, remedy=remedy)
        if callable(kernel):
            raise InvalidInput(
                argument="kernel",
                reason="is a function, but replicates are fast and proved for kernel='laplace' and "
                "kernel='gaussian' only",
            )
        validate.check_choice("kernel", kernel, ("laplace", "gaussian"))
        self.kernel = kernel
        self.bandwidth = validate.check_positive("bandwidth", bandwidth)

    def __call__(self, masses: Vector) -> float:
        """Return the norm of masses on the support."""
        square = laplace_squared if self.kernel == "laplace" else gaussian.squared
        return math.sqrt(max(0.0, square(self.prediction, masses, self.bandwidth)))

    def witness(self, masses: Vector) -> Vector:
        """Return Kc/‖c‖, or 0 where ‖c‖ is 0."""
        potential, none = np.empty_like(masses), np.empty(0)
        sums = laplace.sums if self.kernel == "laplace" else gaussian.sums
        sums(self.prediction, masses, self.bandwidth, potential, none, none)
        norm = self(masses)
        return potential / norm if norm > 0 else np.zeros_like(masses)

    def candidates(self, masses: Vector, noise: float) -> Vector | None:
        """Trust the witness once the norm stands out of the noise."""
        return None if self(masses) < 2 * noise else super().candidates(masses, noise)


def _rounding_bounds(joint: Joint, value: float, **options: Any) -> tuple[float, float] | None:
    """Bound the Laplace kCE of bandwidth 1; of no other option is a bound known.

    Gridded: the moves within the cells are a measure of total 0 whose primitive M vanishes outside
    them. Its squared norm is at most 2 times the integral of M^2, and within a cell |M| is at most
    the sum A of |e| on either side of the centre, so at most 2 max(left, right) A^2 a cell. The
    integral of |M| is at most that of |e| |v - v'|, so at most 2 A times this as well.
    Otherwise the paper's Lemma: kCE moves by at most 2 sqrt(2 E|v - v'|).
    """
    if any(option != _PROVED[name] for name, option in options.items()):
        return None
    if joint.grid is None:
        return around(value, 2 * math.sqrt(2 * joint.radius))
    grid = joint.grid
    low = grid.cell * grid.width
    high = low + grid.width
    side = np.maximum(joint.prediction - low, high - joint.prediction)
    size = (joint.mass0 * high + joint.mass1 * (1 - low)) / joint.total  # of |e|, from above
    moved = math.sqrt(2 * dot(np.minimum(side * size, moves_in_cells(joint)), size))
    bounds = around(value, moved + residual_rounding(joint))
    if grid.within_cells is None:
        return bounds
    return better_of(bounds, _second_order.laplace(grid.within_cells, grid.width))


@measure(
    symbol="kCE",
    summary="largest correlation of the residuals with the unit ball of the {kernel} kernel",
    position=20,
    shown_in=("evaluate", "measure", "report"),
    rounding=_rounding_bounds,
    norm=KernelNorm,
    worst=Worst(bias=KernelNorm.noise, reach=2.0),
)
def kernel_ce(
    y_true: ArrayLike | Joint,
    y_prob: ArrayLike | None = None,
    *,
    kernel: Kernel = "laplace",
    bandwidth: float = 1.0,
    squared: bool = False,
    unbiased: bool = False,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
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

    Twice its square is the squared kernel calibration error (SKCE) of the probability vectors
    p = (1 - v, v), :math:`E[(e_y - p)^\top K(p, p')\,(e_{y'} - p')]` with the unit vector
    :math:`e_y` of the label and the kernel times the identity, because
    :math:`e_y - p = (y - v)\,(-1, 1)`. The unbiased estimator of the SKCE is
    ``2 * kernel_ce(y_true, y_prob, squared=True, unbiased=True)``. There the kernel is a function
    of the total variation distance, \|v - v'\|; with the Euclidean distance
    :math:`\sqrt2\,|v - v'|` the same kernels have the bandwidth :math:`\sqrt2\,h`.

    **What it estimates.** The population's value, at rate 1/√n, with an upward bias that
    ``unbiased=True`` takes off the square.

    **Cost.** Laplace and Gaussian O(n log n), a sort and one pass, at any bandwidth. The Gaussian
    sum is exact to 1e-13 for bandwidths of at least 0.001; below, rounding grows like
    1e-16/bandwidth. A callable costs O(n²) time in blocks of bounded memory.

    Parameters
    ----------
    y_true : array-like of 0 and 1, or Joint
        A joint stands for labels, predictions and weights at once.
    y_prob : array-like in [0, 1]
        The predicted probability of label 1.
    kernel : "laplace", "gaussian" or callable
        A callable K(u, v) takes two arrays that broadcast and returns the kernel's values; it must
        be symmetric and positive definite. The bandwidth is not passed on to it.
    bandwidth : float
        h above.
    squared : bool
        Return kCE², which may be negative if unbiased. Otherwise its root, 0 if negative.
    unbiased : bool
        The U-statistic: leave out the pairs of a row with itself. Only without weights, and not of
        a joint on a grid.
    sample_weight : array-like, optional
    pos_label : optional
        The value of ``y_true`` that counts as label 1, where labels are not 0 and 1.

    References
    ----------
    Kumar, Sarawagi and Jain, "Trainable calibration measures for neural networks from kernel mean
    embeddings", 2018. Widmann, Lindsten and Zachariah, "Calibration tests in multi-class
    classification: a unifying framework", 2019. Błasiok, Gopalan, Hu and Nakkiran, "A Unifying
    Theory of Distance from Calibration", 2023, section 8.

    Examples
    --------
    >>> import caldist
    >>> round(caldist.kernel_ce([0, 1, 0, 1], [0.25, 0.5, 0.5, 0.75]), 12)
    0.055443477714
    """
    if not callable(kernel):
        validate.check_choice("kernel", kernel, ("laplace", "gaussian"))
    bandwidth = validate.check_positive("bandwidth", bandwidth)
    squared = validate.check_flag("squared", squared)
    unbiased = validate.check_flag("unbiased", unbiased)
    if unbiased:
        why = "unbiased=True is for rows that count one each (unbiased=False takes any)"
        joint = counted_joint(y_true, y_prob, sample_weight, why, pos_label)
        value = _exact(Residuals.of(joint), kernel, bandwidth)
        value = _without_diagonal(joint, value, _function(kernel, bandwidth))
        return _finish(value, squared=squared)
    rows = Rows.of(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
    return _finish(_exact(rows.residuals, kernel, bandwidth), squared=squared)


def _exact(residuals: Residuals, kernel: Kernel, bandwidth: float) -> float:
    if kernel == "laplace":
        return laplace_squared(*residuals, bandwidth)
    if kernel == "gaussian":
        return float(gaussian.squared(*residuals, bandwidth))
    return float(_dense(*residuals, _function(kernel, bandwidth)))


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
        reason = "has 1 row, but unbiased=True needs at least two"
        raise InvalidInput(argument="y_prob", reason=reason)
    v = joint.prediction
    own = joint.mass1 * (1 - v) ** 2 + joint.mass0 * v**2
    diagonal = _evaluate(function, v, v)
    return (n * n * value - dot(own, diagonal)) / (n * (n - 1))


def _evaluate(function: KernelFunction, u: Vector, v: Vector) -> Vector:
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


def _dense(prediction: Vector, residual: Vector, function: KernelFunction) -> float:
    """Return sum_ij c_i c_j K(v_i, v_j) in blocks of bounded memory."""
    rows = max(1, _BLOCK // prediction.size)
    total = 0.0
    for start in range(0, prediction.size, rows):
        part = slice(start, start + rows)
        block = _evaluate(function, prediction[part, None], prediction[None, :])
        total += float(residual[part] @ block @ residual)
    return total
