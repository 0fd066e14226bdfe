"""The soft-binned calibration error, SB-ECE."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from caldist._util.types import Vector
from caldist.data import validate
from caldist.data.joint import Joint
from caldist.data.rows import Rows
from caldist.measures.base import measure
from caldist.measures.binned_ece import MOST_BINS

_MEMBERSHIPS = 2**15  # at a time, so that they stay in the processor's cache


def _memberships(prediction: Vector, centre: Vector, temperature: float) -> Vector:
    """Return how far predictions belong to each bin, a row for each bin."""
    apart = (prediction - centre[:, None]) ** 2
    apart -= apart.min(axis=0)  # so that one of them is exp(0)
    with np.errstate(over="ignore", under="ignore"):
        share = np.exp(apart / -temperature)
    share /= share.sum(axis=0)
    return share


@measure(
    symbol="SB-ECE({n_bins})",
    summary="root mean square error of {n_bins} soft bins",
    position=110,
    shown_in=("evaluate",),
)
def soft_binned_ece(
    y_true: ArrayLike | Joint,
    y_prob: ArrayLike | None = None,
    *,
    n_bins: int = 15,
    temperature: float = 0.01,
    norm: float = 2,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    r"""Return the calibration error of predictions that belong to all bins, the nearest most.

    .. math:: \mathrm{SB\text{-}ECE} = \Bigl( \sum_k E[u_k(v)] \,
              \Bigl| \frac{E[(y - v)\,u_k(v)]}{E[u_k(v)]} \Bigr|^p \Bigr)^{1/p}, \qquad
              u_k(v) = \frac{e^{-(v - \xi_k)^2/T}}{\sum_j e^{-(v - \xi_j)^2/T}}

    with the centres :math:`\xi_k = (k - \tfrac12)/M` of M bins of equal width.

    **What it means.** A binned error without jumps: the memberships :math:`u_k` are smooth in the
    prediction. As the temperature T falls it becomes the binned error, where a prediction on an
    edge counts half in each bin. As with every binned error, deviations of opposite sign cancel
    within a bin, so 0 does not mean calibrated.

    The paper applies it to the confidence and whether the most probable label is right. Here it is
    applied to the prediction and the label, like all measures of this package, which sees more. For
    the paper's form reduce first: ``soft_binned_ece(*top_label(y_true, matrix))``.

    **What it estimates.** The population's value with the same bins, at rate 1/√n where it is not
    0, with an upward bias.

    **Cost.** O(n M), without a sort.

    Parameters
    ----------
    y_true : array-like of 0 and 1, or Joint
        A joint stands for labels, predictions and weights at once.
    y_prob : array-like in [0, 1]
        The predicted probability of label 1.
    n_bins : int
        M above; 15 as in the paper.
    temperature : float
        T above. The paper tunes it. At the default of 0.01 and with 15 bins, a prediction at a
        bin's centre belongs to each neighbour 0.64 times as much.
    norm : 1 or 2
        The exponent p; 2 as in the paper's experiments.
    sample_weight : array-like, optional
    pos_label : optional
        The value of ``y_true`` that counts as label 1, where labels are not 0 and 1.

    References
    ----------
    Karandikar, Cain, Tran, Lakshminarayanan, Shlens, Mozer and Roelofs, "Soft calibration
    objectives for neural networks", 2021.

    Examples
    --------
    >>> import caldist
    >>> caldist.measures.soft_binned_ece([0, 1, 1], [0.0, 1.0, 1.0])
    0.0
    >>> round(caldist.measures.soft_binned_ece([0, 1, 0, 1], [0.25, 0.5, 0.5, 0.75]), 12)
    0.16936672878
    """
    n_bins = validate.check_count("n_bins", n_bins, maximum=MOST_BINS)
    temperature = validate.check_positive("temperature", temperature)
    validate.check_choice("norm", norm, (1, 2))
    rows = Rows.of(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
    centre = (np.arange(n_bins) + 0.5) / n_bins
    gap, in_bin = np.zeros(n_bins), np.zeros(n_bins)
    for label, prediction, weight in rows.blocks(max(1, _MEMBERSHIPS // n_bins)):
        share = _memberships(prediction, centre, temperature)
        if weight is not None:
            share *= weight
        in_bin += share.sum(axis=1)
        share *= label - prediction
        gap += share.sum(axis=1)
    gap, in_bin = np.abs(gap) / rows.total, in_bin / rows.total
    if norm == 1:
        return float(gap.sum())
    some = in_bin > 0  # a bin far from all predictions can vanish
    return math.sqrt(float((gap[some] * (gap[some] / in_bin[some])).sum()))
