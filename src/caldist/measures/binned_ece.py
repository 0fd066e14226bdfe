"""The expected calibration error of binned predictions."""

from __future__ import annotations

import math
from typing import Literal, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caldist._util.types import Vector
from caldist.data import validate
from caldist.data.joint import Joint
from caldist.data.rows import BLOCK, Rows
from caldist.errors import InvalidInput
from caldist.measures.base import NO_POPULATION, Lacking, measure
from caldist.measures.bins import Strategy, equal_mass_starts

_OF_BINS = Lacking(
    "it jumps when predictions cross an edge and keeps an upward bias that depends on the bins, so "
    "its interval would describe the bins and not the predictions",
    "Use measure='random_interval_ce', which averages over all positions of the bins.",
)
_BINS = 20  # the default
MOST_BINS = 10_000_000  # whose edges are held in memory


@measure(
    symbol="binnedECE({n_bins})",
    summary="binned error of {n_bins} bins of equal width",
    position=80,
    shown_in=("evaluate", "measure", "report"),
    flips=False,
    no_interval=_OF_BINS,
    no_comparison=NO_POPULATION,
)
def binned_ece(
    y_true: ArrayLike | Joint,
    y_prob: ArrayLike | None = None,
    *,
    n_bins: int = _BINS,
    strategy: Strategy = "uniform",
    edges: ArrayLike | None = None,
    norm: Literal[1, 2, "max"] = 1,
    add_width: bool = False,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    r"""Return the binned expected calibration error.

    .. math:: \mathrm{binnedECE}(I) = \sum_k |E[(y - v)\,1(v \in I_k)]|

    over bins :math:`[e_k, e_{k+1})`, the last one closed. With :math:`w_k` the share of the mass in
    bin k and :math:`d_k` the mean label minus the mean prediction in it, that is
    :math:`\sum_k w_k |d_k|`. With ``norm=2`` it is :math:`\sqrt{\sum_k w_k d_k^2}`, the root mean
    square calibration error, and with ``norm="max"`` :math:`\max_k |d_k|` over bins that are not
    empty, the maximum calibration error: as in scikit-learn's ``calibration_error``.

    **What it means.** Errors of opposite sign cancel within a bin, so 0 does not mean calibrated,
    and the value depends on the bins: on predictions just below and above 1/2 it is 0 or about 1/2
    by the parity of their number. With ``add_width=True`` it is an upper bound on the distance to
    calibration, which the plain value is not. One bin gives \|E[y - v]\|, accuracy in expectation.

    **What it estimates.** The population's value on the same bins, with an upward bias that grows
    with the number of bins.

    **Cost.** O(n), without a sort; O(n log k) for k edges of your own, and O(n log n), a sort, for
    bins of equal mass.

    Parameters
    ----------
    y_true : array-like of 0 and 1, or Joint
        A joint stands for labels, predictions and weights at once.
    y_prob : array-like in [0, 1]
        The predicted probability of label 1.
    n_bins : int
        How many bins.
    strategy : "uniform" or "quantile"
        Bins of equal width, or of equal mass as far as ties allow: bin k starts at the least
        prediction with at least the share k/n_bins of the mass below it.
    edges : array-like, optional
        Increasing bin edges that cover all predictions, in place of ``n_bins`` and ``strategy``.
    norm : 1, 2 or "max"
        How the errors of the bins are put together.
    add_width : bool
        Add the average bin width, weighted by mass: the paper's binnedECEw. Goes with norm 1.
    sample_weight : array-like, optional
    pos_label : optional
        The value of ``y_true`` that counts as label 1, where labels are not 0 and 1.

    Examples
    --------
    >>> import caldist
    >>> caldist.binned_ece([0, 1], [0.4375, 0.5625], n_bins=2)
    0.4375
    >>> caldist.binned_ece([0, 1], [0.4375, 0.5625], n_bins=3)
    0.0
    >>> y_true, y_prob = [0, 0, 1, 1, 1], [0.25, 0.25, 0.25, 0.75, 0.75]
    >>> [round(caldist.binned_ece(y_true, y_prob, n_bins=2, norm=k), 4) for k in (1, 2, "max")]
    [0.15, 0.1708, 0.25]
    """
    n_bins = validate.check_count("n_bins", n_bins, maximum=MOST_BINS)
    validate.check_choice("strategy", strategy, ("uniform", "quantile"))
    validate.check_choice("norm", norm, (1, 2, "max"))
    add_width = validate.check_flag("add_width", add_width)
    if add_width:
        validate.check_goes_with("add_width", add_width, "norm", norm, (1,))
    rows = Rows.of(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
    if edges is not None:
        _refuse_beside_edges(n_bins, strategy)
        edges = _check_edges(edges, rows)
    elif strategy == "quantile":
        joint = rows.joint
        start = equal_mass_starts(joint.mass0 + joint.mass1, n_bins)
        edges = np.concatenate(([0.0], joint.prediction[start[1:]], [1.0]))
    with_shares = norm != 1 or add_width
    gap, share = _sums(rows, n_bins if edges is None else edges, with_shares=with_shares)
    error = np.abs(gap)
    if norm == 1:
        value = float(error.sum())
        if add_width:
            width = np.diff(_uniform_edges(n_bins) if edges is None else edges)
            value += float((share * width).sum())
        return value
    distance = np.divide(error, share, out=np.zeros_like(error), where=share > 0)
    return float(distance.max()) if norm == "max" else math.sqrt(float((error * distance).sum()))


def _sums(rows: Rows, bins: int | Vector, *, with_shares: bool) -> tuple[Vector, Vector]:
    """Return E[(y - v) 1(v in I)] for each bin I, and P(v in I), or 0 where nobody asks for it.

    ``bins`` are edges, or the number of bins of equal width. Rows take turns among several sums of
    a bin, so that rounding errors have little to add up to.
    """
    edges = _uniform_edges(bins) if isinstance(bins, int) else bins
    size = edges.size  # one more than bins: v = 1 is in one of its own
    turns = max(1, min(64, 2**16 // size))
    turn = np.repeat(np.arange(turns) * size, -(-min(BLOCK, rows.size) // turns))
    gap, share = np.zeros(size), np.zeros(size)
    for label, prediction, weight in rows.blocks(max(BLOCK, size)):
        if isinstance(bins, int):
            place = _uniform_places(prediction, edges)
        else:
            place = np.searchsorted(edges[1:-1], prediction, side="right")
        if turns > 1:
            place += turn[: place.size]
        residual = np.subtract(label, prediction, out=label)
        if weight is not None:
            residual *= weight
        gap += np.bincount(place, residual, turns * size).reshape(turns, size).sum(axis=0)
        if with_shares:
            share += np.bincount(place, weight, turns * size).reshape(turns, size).sum(axis=0)
    gap[-2] += gap[-1]
    share[-2] += share[-1]
    return gap[:-1] / rows.total, share[:-1] / rows.total


def _uniform_edges(n_bins: int) -> Vector:
    """Return k/n: the double nearest to it, as the reader of 0.15 expects, which k*(1/n) is not."""
    return np.arange(n_bins + 1) / n_bins


def _uniform_places(prediction: Vector, edges: Vector) -> NDArray[np.intp]:
    """Return the bin of each prediction, of bins of equal width; v = 1 has one of its own."""
    # However products are rounded, this is the bin or the one after it.
    scaled = prediction * ((edges.size - 1) * (1 + 2.0**-50))
    place = scaled.astype(np.intp)
    late = edges.take(place, out=scaled, mode="clip") > prediction
    if late.any():
        place[late] -= 1
    return place


def _refuse_beside_edges(n_bins: int, strategy: str) -> None:
    for name, value, usual in (("n_bins", n_bins, _BINS), ("strategy", strategy, "uniform")):
        if value != usual:
            reason = "edges say which bins there are"
            remedy = f"Leave {name} out."
            raise InvalidInput(argument=name, value=value, reason=reason, remedy=remedy)


def _increase(values: Vector) -> bool:
    return bool((values[1:] > values[:-1]).all())


def _check_edges(edges: ArrayLike, rows: Rows) -> Vector:
    values = validate.real_vector(edges, "edges").astype(np.float64)
    if -math.inf < values[0] <= 0 and 1 <= values[-1] < math.inf and _increase(values):
        return values
    if values.size < 2:
        reason = "has 1 value, but one bin needs two"
        raise InvalidInput(argument="edges", reason=reason)
    with np.errstate(invalid="ignore"):
        step = np.diff(values)
    if not np.isfinite(values).all():
        validate.fail("edges", values, ~np.isfinite(values), "edges are finite numbers")
    if not (step > 0).all():
        at = int(np.argmin(step > 0)) + 1
        _refuse_edge(values, at, f"edges must increase, but the one before is {values[at - 1]}")
    least, most = rows.range
    for at, name, found, outside in (
        (0, "smallest", least, values[0] > least),
        (values.size - 1, "largest", most, values[-1] < most),
    ):
        if outside:
            why = f"edges must cover all predictions, and the {name} one (y_prob) is {found}"
            _refuse_edge(values, at, why)
    return values


def _refuse_edge(values: Vector, at: int, reason: str) -> NoReturn:
    raise InvalidInput(argument="edges", index=at, value=values[at], reason=reason)
