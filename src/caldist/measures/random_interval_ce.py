"""The interval calibration error of randomly shifted bins, RintCE."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from caldist._util.types import Vector
from caldist.data import validate
from caldist.data.joint import Joint
from caldist.data.rows import Rows
from caldist.data.sorting import merged
from caldist.errors import InvalidInput
from caldist.kernels.arrays import prefix_sums
from caldist.measures import _passes, _second_order
from caldist.measures._rounding import (
    around,
    better_of,
    residual_moves,
    residual_rounding,
    within_cells_of,
)
from caldist.measures.base import Worst, measure
from caldist.measures.norms import Norm

DEFAULT_WIDTH = 0.1


class RandomIntervalNorm(Norm):
    """RintCE: averages over the shift of signs that are constant on bins of one width."""

    def __init__(
        self, prediction: Vector, *, width: float = DEFAULT_WIDTH, add_width: bool = False
    ) -> None:
        super().__init__(prediction)
        if add_width:
            reason = "with it random_interval_ce is not the norm that this needs"
            remedy = "Leave it out here."
            raise InvalidInput(argument="add_width", value=True, reason=reason, remedy=remedy)
        self.width = validate.check_positive("width", width)
        # The window sums have variance p/n, p the mass in the window; the root's integral over
        # the windows, of length 1 + width, is largest where p is the same for all.
        self.noise = math.sqrt(1 + 1 / self.width)

    def __call__(self, masses: Vector) -> float:
        """Return the norm of masses on the support."""
        return self.of_sums(prefix_sums(masses))

    def of_sums(self, sums: Vector) -> float:
        """Return the norm from prefix sums, which norms of several widths can share."""
        return _passes.random_interval_ce(self.prediction, sums, self.width)

    def witness(self, masses: Vector) -> Vector:
        """Return the mean, over the windows [t, t + width) that hold v_i, of their sums' signs."""
        v, sums = self.prediction, prefix_sums(masses)
        # A window meets v_i when it begins at v_i - width, and leaves it behind at v_i.
        edge, meets, leaves = merged(v - self.width, v)
        inside = sums[np.bincount(meets, minlength=edge.size).cumsum()]
        inside -= sums[np.bincount(leaves, minlength=edge.size).cumsum()]
        area = prefix_sums(np.sign(inside[:-1]) * np.diff(edge))
        mean: Vector = (area[leaves] - area[meets]) / self.width
        return mean

    def candidates(self, masses: Vector, noise: float) -> Vector | None:  # noqa: ARG002
        """Trust no witness: it follows the noise of every bin."""
        return None


def _rounding_bounds(
    joint: Joint, value: float, *, width: float = DEFAULT_WIDTH, add_width: bool = False
) -> tuple[float, float]:
    """Bound RintCE: a point changes its bin with chance at most |v - v'|/width."""
    added = width if add_width else 0.0
    moved = joint.radius if joint.grid is None else residual_moves(joint)
    bounds = around(value - added, 2 / width * moved + residual_rounding(joint))
    within = within_cells_of(joint)
    if within is not None:
        bounds = better_of(bounds, _second_order.random_interval(within, width))
    return bounds[0] + added, bounds[1] + added


def rounding_change(joint: Joint, width: float) -> float:
    """Bound how far RintCE of the joint is from that of the true predictions."""
    if joint.radius == 0:
        return 0.0
    value = random_interval_ce(joint, width=width)
    lower, upper = _rounding_bounds(joint, value, width=width)
    return max(value - lower, upper - value)


@measure(
    symbol="RintCE({width:g})",
    summary="binned error averaged over all shifts of bins of width {width:g}",
    position=70,
    shown_in=("evaluate", "report", "test"),
    rounding=_rounding_bounds,
    norm=RandomIntervalNorm,
    worst=Worst(bias=math.sqrt(1 + 1 / DEFAULT_WIDTH), reach=2.0),
)
def random_interval_ce(
    y_true: ArrayLike | Joint,
    y_prob: ArrayLike | None = None,
    *,
    width: float = DEFAULT_WIDTH,
    add_width: bool = False,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    r"""Return the binned ECE averaged over all shifts of bins of one width, exactly.

    .. math:: \mathrm{RintCE}(\varepsilon) = E_r \sum_j |E[(y - v)\,1(v \in [r + j\varepsilon,
              r + (j + 1)\varepsilon))]|, \quad r \sim U[0, \varepsilon)

    **What it means.** Binning without the accident of where the bins lie. With ``add_width=True``
    it is an upper bound on the distance to calibration, the paper's advice to those who must bin.
    Without, :math:`\mathrm{RintCE}(\varepsilon) \le (1 + 2/\varepsilon)\,\mathrm{ldCE}`.

    **What it estimates.** The population's value at the same width, at rate 1/√n.

    **Cost.** O(n log n): a sort and one pass, with no random numbers.

    Parameters
    ----------
    y_true : array-like of 0 and 1, or Joint
        A joint stands for labels, predictions and weights at once.
    y_prob : array-like in [0, 1]
        The predicted probability of label 1.
    width : float
        The bin width ε.
    add_width : bool
        Add ε.
    sample_weight : array-like, optional
    pos_label : optional
        The value of ``y_true`` that counts as label 1, where labels are not 0 and 1.

    Examples
    --------
    >>> import caldist
    >>> caldist.random_interval_ce([0, 1], [0.25, 0.75], width=1.0)
    0.125
    """
    width = validate.check_positive("width", width)
    add_width = validate.check_flag("add_width", add_width)
    rows = Rows.of(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
    residuals = rows.residuals
    value = _passes.random_interval_ce(residuals.prediction, residuals.sums(), width)
    return value + width if add_width else value
