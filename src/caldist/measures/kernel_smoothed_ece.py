"""The ECE of kernel-smoothed residuals, smECE."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from caldist._util.types import Vector
from caldist.data.joint import Joint
from caldist.data.rows import BLOCK, Rows
from caldist.measures import _second_order
from caldist.measures._rounding import (
    better_of,
    residual_moves,
    residual_rounding,
    within_cells_of,
)
from caldist.measures.base import measure
from caldist.measures.reflected_gaussian import (
    LEAST_CELLS,
    ORDER,
    MomentNorm,
    SmoothedNorm,
    moments,
)

_NEGLIGIBLE = 1e-200  # below it the squares of widths vanish, and nobody can tell it from 0
_TOLERANCE = 1e-10  # to which it is computed
_BISECTIONS = 60
_SHRINK = 8.0  # by how much the range of widths is extended downwards at a time
_ROUNDING = 1e-14  # of the norm
_PRECISION = 1e-13  # relative, of its fixed point
_STEPS = 60
# Calibrated rows have a value of about n^(-1/3)/2, so that cells are laid for a third of that.
_CELLS_PER_ROOT = 20.0
_FEWEST_CELLS = 64
_MOST_CELLS = 1 << 16


def _rounding_bounds(joint: Joint, value: float) -> tuple[float, float]:
    """Bound smECE.

    A Gaussian of width σ that moves by d changes by √(2/π) d/σ in L1. So the norms at width σ
    differ by at most b/σ + r, b = √(2/π) E[|e| |v - v'|] and r the change of the residuals. The
    norm of the residuals deposited on edges differs by at most a/σ² + b/σ + r, with a and b of
    second order.
    """
    moved = joint.radius if joint.grid is None else residual_moves(joint)
    change = residual_rounding(joint) + _TOLERANCE
    bounds = _around_fixed_point(value, 0.0, math.sqrt(2 / math.pi) * moved, change)
    within = within_cells_of(joint)
    if joint.grid is None or within is None or value < joint.grid.width:
        return bounds
    low, high = max(bounds[0], value / 2), min(bounds[1], 2 * value)
    norm = SmoothedNorm(within.node, within.deposit, low, high)
    # As the norm does not increase, its fixed point lies between any width and the norm there:
    # close together after one step of the secant method.
    start = norm(value) - value
    middle = min(max(value + start / 2, low), high)
    rest = norm(middle) - middle
    slope = (rest - start) / (middle - value) if middle != value else -1.0
    width = min(max(value - start / slope, low), high) if slope < 0 else value
    found = norm(width)
    quadratic, linear = _second_order.smoothing_change(within, joint.grid.width)
    lower, _ = _around_fixed_point(min(width, found), quadratic, linear, change)
    _, upper = _around_fixed_point(max(width, found), quadratic, linear, change)
    return better_of(bounds, (lower, upper))


def _around_fixed_point(
    value: float, quadratic: float, linear: float, constant: float
) -> tuple[float, float]:
    """Bound the fixed point of norms whose own one is ``value``.

    They differ from those at width σ by at most g(σ) = quadratic/σ² + linear/σ + constant. As
    the norms do not increase with σ, a fixed point s + x has x <= g(s + x), and s - x has
    x <= g(s).
    """

    def change(width: float) -> float:
        return (quadratic / width + linear) / width + constant

    lower = value - change(value) if value > 0 else 0.0
    below, above = 0.0, 1.0
    for _ in range(_BISECTIONS):
        middle = (below + above) / 2
        below, above = (middle, above) if middle <= change(value + middle) else (below, middle)
    return max(0.0, lower), value + above


@measure(
    symbol="smECE",
    summary="ECE after Gaussian smoothing over as much as it measures",
    position=100,
    shown_in=("evaluate",),
    rounding=_rounding_bounds,
)
def kernel_smoothed_ece(
    y_true: ArrayLike | Joint,
    y_prob: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    r"""Return the smooth ECE of Błasiok and Nakkiran.

    .. math:: \mathrm{smECE}_\sigma = \int_0^1 \bigl| E[(y - v)\, K_\sigma(v, t)] \bigr|\, dt

    at the fixed point :math:`\mathrm{smECE}_\sigma = \sigma`, with the reflected Gaussian kernel:
    :math:`K_\sigma(v, \cdot)` is the density of a normal variable of mean v and standard deviation
    σ, folded into [0, 1] at 0 and 1. As :math:`\mathrm{smECE}_\sigma` does not increase with σ,
    there is exactly one such σ.

    **What it means.** The ECE after smoothing over as much as it measures. It is 0 if and only if
    the predictions are perfectly calibrated, is at most the ECE, and is a consistent calibration
    measure: polynomially related to the distance to calibration. It differs from
    :func:`caldist.smooth_ce`, which takes a supremum over Lipschitz functions.

    **What it estimates.** The population's value. At perfect calibration a sample shows a number
    of the order of n^(-1/3), not 0.

    **Accuracy.** Within 1e-10; against direct sums of Gaussians the error was below 1e-13. Nothing
    is rounded to a fixed grid, and the whole mass of predictions at exactly 0 and 1 counts.
    Implementations that leave half of that mass out give smaller numbers for certain predictions.

    **Cost.** O(n) for the moments of the rows in cells, without a sort, and O(m log m) for fast
    Fourier transforms, m = 1/smECE, up to a constant. A second pass where the value is much smaller
    than calibrated predictions suggest; a sort where it is smaller than the distances between most
    predictions.

    Parameters
    ----------
    y_true : array-like of 0 and 1, or Joint
        A joint stands for labels, predictions and weights at once.
    y_prob : array-like in [0, 1]
        The predicted probability of label 1.
    sample_weight : array-like, optional
    pos_label : optional
        The value of ``y_true`` that counts as label 1, where labels are not 0 and 1.

    References
    ----------
    Błasiok and Nakkiran, "Smooth ECE: Principled Reliability Diagrams via Kernel Smoothing", 2023.

    Examples
    --------
    >>> import caldist
    >>> caldist.measures.kernel_smoothed_ece([1, 1], [0.5, 0.75])
    0.375
    >>> round(caldist.measures.kernel_smoothed_ece([0, 1, 0, 1], [0.25, 0.5, 0.5, 0.75]), 10)
    0.1202899221
    """
    rows = Rows.of(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
    wanted = _CELLS_PER_ROOT * rows.size ** (1 / 3)
    while wanted <= min(_MOST_CELLS, 4 * rows.size + _FEWEST_CELLS):
        cells = max(_FEWEST_CELLS, 1 << math.ceil(wanted - 1).bit_length())
        moment = _moments(rows, cells)
        mean = abs(float(moment[0].sum()))  # no width makes it smaller
        least = LEAST_CELLS / cells
        norm = MomentNorm(moment)
        low = max(mean, least)
        value = norm(low)
        if low == mean and value <= mean * (1 + _ROUNDING):
            return mean
        if value >= low:
            return _fixed_point(norm, low, value)
        # The fixed point lies between the two, as the norm does not increase.
        wanted = LEAST_CELLS / max(0.999 * value, least / _SHRINK)
    return _of_sorted(rows.joint)


def _moments(rows: Rows, cells: int) -> Vector:
    """Return the moments of the residuals in cells of [0, 1], a row for each order."""
    moment = np.zeros((ORDER, cells))
    for label, prediction, weight in rows.blocks(max(BLOCK, cells)):
        residual = label - prediction
        if weight is not None:
            residual *= weight
        moment += moments(prediction * cells, residual, cells)
    return moment / rows.total


def _of_sorted(joint: Joint) -> float:
    """Return smECE where it is small beside the distances of most predictions."""
    residual = joint.residual()
    high = float(np.abs(residual).sum())  # smoothing never makes it larger
    if high < _NEGLIGIBLE or residual.min() >= 0 or residual.max() <= 0:
        return high  # without both signs nothing cancels
    low = min(high / 2, 0.125 * float(residual.size) ** (-1 / 3))
    while True:
        norm = SmoothedNorm(joint.prediction, residual, low, high)
        value = norm(low)
        if value >= low:
            return _fixed_point(norm, low, min(value, high))
        low, high = max(0.999 * value, low / _SHRINK), low


def _fixed_point(norm: Callable[[float], float], low: float, high: float) -> float:
    """Return the σ in [low, high] with norm(σ) = σ, where norm(low) >= low.

    As the norm does not increase, every value narrows the range: the fixed point lies between σ
    and norm(σ). Between these go the steps of the secant method.
    """
    before, rest_before = low, high - low
    width = (low + high) / 2
    for _ in range(_STEPS):
        value = norm(width)
        rest = value - width
        if rest >= 0:
            low, high = max(low, width), min(high, value)
        else:
            low, high = max(low, value), min(high, width)
        slope = (rest - rest_before) / (width - before) if width != before else -1.0
        found = width - rest / min(slope, -1.0)  # the norm does not increase
        if abs(rest) <= _PRECISION * width or high - low <= _PRECISION * high:
            return min(max(found, low), high)
        before, rest_before = width, rest
        width = found if low < found < high else (low + high) / 2
    return width
