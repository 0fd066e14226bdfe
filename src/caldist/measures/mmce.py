"""The maximum mean calibration error, MMCE."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from caldist.data import validate
from caldist.data.joint import Joint
from caldist.data.rows import Rows
from caldist.data.sorting import merging_order, sort_masses
from caldist.measures.base import measure
from caldist.measures.kernel_ce import kernel_ce


@measure(
    symbol="MMCE",
    summary="kernel error of the confidence, Laplace kernel of bandwidth {bandwidth:g}",
    position=120,
    shown_in=("evaluate",),
    flips=False,
)
def mmce(
    y_true: ArrayLike | Joint,
    y_prob: ArrayLike | None = None,
    *,
    bandwidth: float = 0.4,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    r"""Return the maximum mean calibration error of the confidence.

    .. math:: \mathrm{MMCE}^2 = E[(c - r)(c' - r')\,e^{-|r - r'|/h}]

    for two independent rows, where r = max(v, 1 - v) is the confidence in the more probable label
    and c is 1 if that label is the true one, else 0. At v = 1/2 the label 0 counts as the more
    probable one, as in :func:`caldist.multiclass.top_label`.

    **What it means.** The kernel calibration error of the confidence, not of the prediction.
    :func:`caldist.kernel_ce` asks whether v is calibrated; this asks whether max(v, 1 - v) is. The
    errors at v and at 1 - v share a confidence and can cancel: predicting 0.25 and 0.75 where the
    frequencies are 0 and 0.5 has an MMCE of 0. So 0 does not mean that the predictions are
    calibrated; perfectly calibrated predictions have 0. The default bandwidths differ too: 0.4
    here, as in the paper, and 1 there.

    **What it estimates.** The population's value, at rate 1/√n, with an upward bias: the pairs of a
    row with itself are part of the sum, as in the paper.

    **Cost.** O(n log n), a sort, a merge and one pass, for the double sum that the paper writes.

    Parameters
    ----------
    y_true : array-like of 0 and 1, or Joint
        A joint stands for labels, predictions and weights at once.
    y_prob : array-like in [0, 1]
        The predicted probability of label 1.
    bandwidth : float
        h above.
    sample_weight : array-like, optional
    pos_label : optional
        The value of ``y_true`` that counts as label 1, where labels are not 0 and 1.

    References
    ----------
    Kumar, Sarawagi and Jain, "Trainable calibration measures for neural networks from kernel mean
    embeddings", 2018.

    Examples
    --------
    >>> import caldist
    >>> caldist.measures.mmce([0, 1, 1], [0.0, 1.0, 1.0])
    0.0
    >>> caldist.measures.mmce([0, 0, 0, 1], [0.25, 0.25, 0.75, 0.75])
    0.0
    >>> caldist.measures.mmce([1, 0], [0.25, 0.75])
    0.75
    """
    bandwidth = validate.check_positive("bandwidth", bandwidth)
    joint = Rows.of(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label).joint
    v, mass0, mass1 = joint.prediction, joint.mass0, joint.mass1
    # Where label 0 is the more probable one the confidence falls, where label 1 is it rises.
    half = int(np.searchsorted(v, 0.5, side="right"))
    confidence = np.concatenate((1 - v[:half][::-1], v[half:]))
    wrong = np.concatenate((mass1[:half][::-1], mass0[half:]))
    right = np.concatenate((mass0[:half][::-1], mass1[half:]))
    merged = sort_masses(confidence, wrong, right, order=merging_order(confidence))
    return kernel_ce(Joint(**merged), bandwidth=bandwidth)
