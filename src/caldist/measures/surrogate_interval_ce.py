"""The surrogate interval calibration error, SintCE."""

from __future__ import annotations

import math

from numpy.typing import ArrayLike

from caldist.data.joint import Joint
from caldist.data.residuals import Residuals
from caldist.data.rows import Rows
from caldist.measures import _passes, _second_order
from caldist.measures._rounding import within_cells_of
from caldist.measures.base import NOT_A_NORM, measure
from caldist.measures.random_interval_ce import random_interval_ce

_FINEST = 60  # 2^-60 is below the spacing of doubles near any prediction that matters


def _rounding_bounds(joint: Joint, _value: float) -> tuple[float, float]:
    """Bound SintCE by bounding the RintCE(2^-k) in its infimum.

    RintCE(2^-k) does not decrease with k. So a lower bound at K also holds for all finer widths,
    and SintCE is at least the least of it and of the bounds on RintCE(2^-k) + 2^-k up to K.
    """
    within = within_cells_of(joint)
    floor = lower = 0.0
    coarser = math.inf
    sums = {}
    for k in range(60 if joint.grid is None else joint.grid.bits + 1):
        width = 2.0**-k
        least, most = (
            _random_interval(joint, width)
            if within is None
            else _second_order.dyadic_interval(within, width)
        )
        floor = max(floor, least)
        coarser = min(coarser, floor + width)
        lower = max(lower, min(coarser, floor))
        sums[width] = most + width
        if floor >= coarser or most - least >= max(floor, width):
            break
    if within is None:
        return lower, min(sums.values())
    # What cells leave open is worked out for the few widths that can be the best.
    upper = math.inf
    for width in sorted(sums, key=lambda width: sums[width]):
        if sums[width] >= upper:
            break
        upper = min(upper, _random_interval(joint, width)[1] + width)
    return lower, upper


def _random_interval(joint: Joint, width: float) -> tuple[float, float]:
    at_width = random_interval_ce.using(width=width)
    ends = at_width.rounding(joint, at_width(joint))
    assert ends is not None  # noqa: S101 -- it is bounded at every width
    return ends


@measure(
    symbol="SintCE",
    summary="best dyadic width plus its error over random shifts",
    position=60,
    shown_in=("evaluate",),
    above_distance=True,
    rounding=_rounding_bounds,
    interval="dyadic widths",
    no_comparison=NOT_A_NORM,
)
def surrogate_interval_ce(
    y_true: ArrayLike | Joint,
    y_prob: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    r"""Return the surrogate interval calibration error.

    .. math:: \mathrm{SintCE} = \inf_{k \ge 0} \mathrm{RintCE}(2^{-k}) + 2^{-k}

    **What it means.** An upper bound on the distance to calibration, and never more than six times
    the square root of the lower distance.

    **What it estimates.** The population's value, but with an upward bias that is large for small
    samples: about 0.12 at n = 400 where the population has 0.

    **Cost.** O(n log n): a sort, and a pass for each of about six k.

    Parameters
    ----------
    y_true : array-like of 0 and 1, or Joint
        A joint stands for labels, predictions and weights at once.
    y_prob : array-like in [0, 1]
        The predicted probability of label 1.
    sample_weight : array-like, optional
    pos_label : optional
        The value of ``y_true`` that counts as label 1, where labels are not 0 and 1.

    Examples
    --------
    >>> import caldist
    >>> caldist.surrogate_interval_ce([0, 1, 1], [0.0, 1.0, 1.0])
    0.0
    >>> caldist.surrogate_interval_ce([0, 1, 0, 1], [0.25, 0.5, 0.5, 0.75])
    0.125
    """
    rows = Rows.of(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
    return _exact(rows.residuals)


def _exact(residuals: Residuals) -> float:
    """Return the least of RintCE(2^-k) + 2^-k, with few of them computed.

    RintCE does not decrease with k. So none of those from ``first`` to ``last`` is below what is
    known of the one before the first, and the last width.
    """
    sums = residuals.sums()
    best = residuals.absolute()  # ECE, the limit of fine bins
    # At first where noise, about the root of bins over rows, is as large as the width.
    guess = round(math.log2(residuals.mass.size) / 3)
    left = [(abs(float(sums[-1])), 0, _FINEST, guess)]  # the error of one bin is the least
    while left:
        error, first, last, step = left.pop()
        while first <= last and error + 2.0**-first >= best:
            first += 1
        if first > last or error + 2.0**-last >= best:
            continue
        middle = min(first + step, last) if last == _FINEST else (first + last) // 2
        found = _passes.random_interval_ce(residuals.prediction, sums, 2.0**-middle)
        best = min(best, found + 2.0**-middle)
        left += [(error, first, middle - 1, 0), (found, middle + 1, last, 1)]
    return best
