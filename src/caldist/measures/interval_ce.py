"""The interval calibration error, intCE."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caldist._util.types import Vector
from caldist.data.joint import Joint
from caldist.data.rows import Rows
from caldist.errors import answering
from caldist.kernels.loader import interval
from caldist.measures.base import NOT_A_NORM, measure


@measure(
    symbol="intCE",
    summary="best binned error plus average bin width",
    position=50,
    shown_in=("evaluate", "report"),
    above_distance=True,
    interval="partitions",
    no_comparison=NOT_A_NORM,
)
def interval_ce(
    y_true: ArrayLike | Joint,
    y_prob: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    r"""Return the interval calibration error, exactly.

    .. math:: \mathrm{intCE} = \min_I \; \mathrm{binnedECE}(I) + w(I)

    over all partitions I of [0, 1] into intervals, w(I) being their average width, weighted by
    mass.

    **What it means.** The best that binning can prove: an upper bound on the distance to
    calibration, and never more than four times the square root of the lower distance. It is not
    continuous in the predictions.

    **What it estimates.** The population's value at the slow rate n^(-1/3); on a sample it is
    biased upwards.

    **Cost.** A sort and a search over partitions that is close to linear on ordinary data and
    O(n log² n) in the worst case.

    Parameters
    ----------
    y_true : array-like of 0 and 1, or Joint
        A joint stands for labels, predictions and weights at once.
    y_prob : array-like in [0, 1]
        The predicted probability of label 1.
    sample_weight : array-like, optional
    pos_label : optional
        The value of ``y_true`` that counts as label 1, where labels are not 0 and 1.

    See Also
    --------
    optimal_partition : the intervals themselves.

    Examples
    --------
    >>> import caldist
    >>> caldist.interval_ce([0, 1, 0, 1], [0.25, 0.5, 0.5, 0.75])
    0.125
    """
    return _partition(
        Rows.of(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label).joint
    )[0]


@answering
def optimal_partition(
    y_true: ArrayLike | Joint,
    y_prob: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> Vector:
    """Return the edges of an interval partition that attains the interval calibration error.

    The intervals are [e_k, e_{k+1}), the last one closed. Each group of predictions has an interval
    that ends just above its largest one; the intervals between groups are empty and cost nothing.
    So ``binned_ece(y_true, y_prob, edges=edges, add_width=True)`` is the interval calibration
    error.

    Examples
    --------
    >>> import caldist
    >>> y_true, y_prob = [0, 1, 0, 1], [0.25, 0.5, 0.5, 0.75]
    >>> edges = caldist.measures.optimal_partition(y_true, y_prob)
    >>> float(caldist.binned_ece(y_true, y_prob, edges=edges, add_width=True))
    0.125...
    """
    joint = Rows.of(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label).joint
    _, first = _partition(joint)
    start = joint.prediction[first]
    last = joint.prediction[np.append(first[1:], joint.prediction.size) - 1]
    end = np.nextafter(last, np.inf)
    return np.unique(np.concatenate(([0.0], start, end, [max(1.0, end[-1])])))


def interval_groups_below(joint: Joint, limit: float) -> NDArray[np.int64] | None:
    """Return the first prediction's index of each group of an optimal partition.

    If intCE is at least the limit, which takes less time to find out, this may be None.
    """
    _, first = _partition(joint, limit)
    return first if first.size else None


def _partition(joint: Joint, limit: float = np.inf) -> tuple[float, NDArray[np.int64]]:
    """Return the value and the groups, each by the index of its first prediction."""
    first = np.empty(joint.prediction.size, dtype=np.int64)
    mass = (joint.mass0 + joint.mass1) / joint.total
    value, groups = interval.interval_partition(
        joint.prediction, mass, joint.residual(), limit, first
    )
    return float(value), first[:groups]
