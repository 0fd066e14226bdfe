"""The expected calibration error of binned predictions."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caldist import _validate
from caldist.data.joint import Joint

__all__ = ["binned_ece", "binned_ece_of"]

Vector = NDArray[np.float64]
Strategy = Literal["uniform", "quantile"]

MOST_BINS = 10_000_000  # whose edges are held in memory


def binned_ece(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    n_bins: int = 20,
    strategy: Strategy = "uniform",
    edges: ArrayLike | None = None,
    add_width: bool = False,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Return the binned expected calibration error.

    .. math:: \mathrm{binnedECE}(I) = \sum_k |E[(y - v)\,1(v \in I_k)]|

    over bins :math:`[e_k, e_{k+1})`, the last one closed.

    **What it means.** Errors of opposite sign cancel within a bin, so 0 does not mean calibrated,
    and the value depends on the bins: on predictions just below and above 1/2 it is 0 or about 1/2
    by the parity of their number. With ``add_width=True`` it is an upper bound on the distance to
    calibration, which the plain value is not. One bin gives \|E[y - v]\|, accuracy in expectation.

    **What it estimates.** The population's value on the same bins, with an upward bias that grows
    with the number of bins.

    **Cost.** O(n log n), a sort.

    Parameters
    ----------
    y_true : array-like of 0 and 1
    y_prob : array-like in [0, 1]
        The predicted probability of label 1.
    n_bins : int
        How many bins; not used when ``edges`` are given.
    strategy : "uniform" or "quantile"
        Bins of equal width, or of equal mass as far as ties allow: bin k starts at the least
        prediction with at least the share k/n_bins of the mass below it.
    edges : array-like, optional
        Increasing bin edges that cover all predictions.
    add_width : bool
        Add the average bin width, weighted by mass: the paper's binnedECEw.
    sample_weight : array-like, optional

    Examples
    --------
    >>> import caldist
    >>> caldist.binned_ece([0, 1], [0.4375, 0.5625], n_bins=2)
    0.4375
    >>> caldist.binned_ece([0, 1], [0.4375, 0.5625], n_bins=3)
    0.0
    """
    n_bins = _validate.check_count("n_bins", n_bins, maximum=MOST_BINS)
    _validate.check_choice("strategy", strategy, ("uniform", "quantile"))
    add_width = _validate.check_flag("add_width", add_width)
    joint = Joint.from_arrays(y_true, y_prob, sample_weight=sample_weight)
    given = None if edges is None else _check_edges(edges, joint)
    return binned_ece_of(joint, n_bins=n_bins, strategy=strategy, edges=given, add_width=add_width)


def binned_ece_of(
    joint: Joint,
    *,
    n_bins: int = 20,
    strategy: Strategy = "uniform",
    edges: Vector | None = None,
    add_width: bool = False,
) -> float:
    """Return the binned ECE of a joint distribution."""
    if edges is None:
        if strategy == "uniform":
            # k/n is the double nearest to the edge, as the reader of 0.15 expects; k*(1/n) is not.
            edges = np.arange(n_bins + 1) / n_bins
        else:
            edges = _equal_mass_edges(joint, n_bins)
    # The first point of each bin. Points at or beyond the last edge belong to the last bin.
    first = np.searchsorted(joint.prediction, edges[:-1])
    filled = np.diff(first, append=joint.prediction.size) > 0
    value = float(np.abs(np.add.reduceat(joint.residual(), first[filled])).sum())
    if add_width:
        mass = np.add.reduceat(joint.mass0 + joint.mass1, first[filled]) / joint.total
        value += float(mass @ np.diff(edges)[filled])
    return value


def _equal_mass_edges(joint: Joint, n_bins: int) -> Vector:
    # Scaled by a power of two, which is exact, so that no product overflows.
    mass = np.ldexp(joint.mass0 + joint.mass1, -math.frexp(joint.total)[1])
    below = np.concatenate(([0.0], np.cumsum(mass)))
    # below * n >= k * total rather than below >= k * total / n: exact for row counts.
    start = np.searchsorted(below[:-1] * n_bins, np.arange(1, n_bins) * below[-1])
    inner = joint.prediction[start[start < joint.prediction.size]]
    return np.unique(np.concatenate(([0.0], inner, [1.0])))


def _check_edges(edges: ArrayLike, joint: Joint) -> Vector:
    values = _validate.real_vector(edges, "edges").astype(np.float64)
    if values.size < 2:
        message = f"edges has {values.size} value; one bin needs two."
        raise ValueError(message)
    with np.errstate(invalid="ignore"):
        step = np.diff(values)
    if not np.isfinite(values).all():
        at = int(np.argmin(np.isfinite(values)))
        message = f"edges[{at}] is {values[at]}: edges are finite numbers."
        raise ValueError(message)
    if not (step > 0).all():
        at = int(np.argmin(step > 0)) + 1
        message = f"edges[{at}] is {values[at]}, after {values[at - 1]}: edges must increase."
        raise ValueError(message)
    for at, name in ((0, "smallest"), (-1, "largest")):
        outside = values[0] > joint.prediction[0] if at == 0 else values[-1] < joint.prediction[-1]
        if outside:
            message = (
                f"edges[{at}] is {values[at]}, but the {name} prediction (y_prob) is "
                f"{joint.prediction[at]}: the edges must cover all predictions."
            )
            raise ValueError(message)
    return values
