"""Measures of tensors, computed where the tensors are."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor

from caldist.data import validate
from caldist.errors import answering
from caldist.measures.binned_ece import MOST_BINS
from caldist.torch import _checks
from caldist.torch._operators import sorted_labels
from caldist.torch._sums import cell_sums


@answering
def brier_score(y_prob: Tensor, y_true: Tensor, *, sample_weight: Tensor | None = None) -> Tensor:
    r"""Return the Brier score of tensors, the mean of :math:`(y - v)^2`.

    **What it means.** See :func:`caldist.brier_score`, whose value it is, up to rounding. As a
    loss use ``torch.nn.functional.mse_loss``: this has no gradient.

    **Cost.** O(n) on the device of the tensors, of which one number is fetched: whether all values
    are valid.

    Parameters
    ----------
    y_prob : floating-point tensor in [0, 1]
        The predicted probability of label 1, not logits: apply the sigmoid first. A gradient is
        left aside.
    y_true : tensor of 0 and 1, of any real type
    sample_weight : tensor, optional

    Returns
    -------
    scalar tensor
        In float64, on the device of ``y_prob``.

    Examples
    --------
    >>> import torch
    >>> from caldist.torch import brier_score
    >>> brier_score(torch.tensor([0.25, 0.5, 0.5, 0.75]), torch.tensor([0, 1, 0, 1])).item()
    0.15625
    """
    with torch.no_grad():
        prob, label, weight = _rows(y_prob, y_true, sample_weight)
        square = (label - prob.double()).square_()
        return square.mean() if weight is None else square @ weight


@answering
def binned_ece(
    y_prob: Tensor,
    y_true: Tensor,
    *,
    n_bins: int = 20,
    norm: Literal[1, 2, "max"] = 1,
    sample_weight: Tensor | None = None,
) -> Tensor:
    r"""Return the expected calibration error of tensors in bins of equal width.

    .. math:: \mathrm{binnedECE}(I) = \sum_k |E[(y - v)\,1(v \in I_k)]|

    over bins :math:`[k/b, (k + 1)/b)`, the last one closed.

    **What it means.** See :func:`caldist.binned_ece`, whose value it is, up to rounding.

    **Cost.** O(n log b) on the device of the tensors, of which one number is fetched: whether all
    values are valid.

    Parameters
    ----------
    y_prob : floating-point tensor in [0, 1]
        The predicted probability of label 1, not logits: apply the sigmoid first. A gradient is
        left aside.
    y_true : tensor of 0 and 1, of any real type
    n_bins : int
        b above.
    norm : 1, 2 or "max"
        How the errors of the bins are put together, as in :func:`caldist.binned_ece`.
    sample_weight : tensor, optional

    Returns
    -------
    scalar tensor
        In float64, on the device of ``y_prob``.

    Examples
    --------
    >>> import torch
    >>> from caldist.torch import binned_ece
    >>> y_prob, y_true = torch.tensor([0.4375, 0.5625]), torch.tensor([0, 1])
    >>> binned_ece(y_prob, y_true, n_bins=2).item()
    0.4375
    >>> binned_ece(y_prob, y_true, n_bins=3).item()
    0.0
    """
    with torch.no_grad():
        n_bins = validate.check_count("n_bins", n_bins, maximum=MOST_BINS)
        validate.check_choice("norm", norm, (1, 2, "max"))
        prob, label, weight = _rows(y_prob, y_true, sample_weight)
        # On the CPU, as a GPU multiplies by 1/n_bins instead of dividing, which moves edges.
        inner = (torch.arange(1, n_bins, dtype=torch.float64) / n_bins).to(prob.device)
        v = prob.double()
        place = torch.bucketize(v, inner, right=True)
        residual = label - v
        if weight is not None:
            residual *= weight
        if norm == 1:
            [error] = cell_sums(place, residual, count=n_bins)
            return _mean(error.abs(), prob, weight)
        mass = torch.ones_like(residual) if weight is None else weight
        error, share = cell_sums(place, residual, mass, count=n_bins)
        return _in_norm(error, share, math.inf if norm == "max" else 2, prob, weight)


@answering
def ece(
    y_prob: Tensor,
    y_true: Tensor,
    *,
    norm: float = 1,
    sample_weight: Tensor | None = None,
) -> Tensor:
    r"""Return the expected calibration error of tensors, the mean of \|E[y | v] - v\|.

    .. math:: \ell_p\text{-ECE} = (E\,|E[y \mid v] - v|^p)^{1/p}

    **What it means.** See :func:`caldist.ece`, whose value it is, up to rounding. It takes
    predictions as they are: in half precision many are equal, and it is smaller.

    **Cost.** O(n log n), a sort, on the device of the tensors, of which two numbers are fetched:
    whether all values are valid, and how many are distinct.

    Parameters
    ----------
    y_prob : floating-point tensor in [0, 1]
        The predicted probability of label 1, not logits: apply the sigmoid first. A gradient is
        left aside.
    y_true : tensor of 0 and 1, of any real type
    norm : 1, 2 or inf
        The exponent p; inf is the largest deviation of any predicted value.
    sample_weight : tensor, optional

    Returns
    -------
    scalar tensor
        In float64, on the device of ``y_prob``.

    Examples
    --------
    >>> import torch
    >>> from caldist.torch import ece
    >>> ece(torch.tensor([0.5, 0.5, 0.75, 0.75]), torch.tensor([0, 1, 1, 1])).item()
    0.125
    """
    with torch.no_grad():
        validate.check_choice("norm", norm, (1, 2, math.inf))
        prob, label, weight = _rows(y_prob, y_true, sample_weight)
        key, order = sorted_labels(prob[None], label[None])
        v, y = (key[0] >> 1).view(prob.dtype).double(), key[0] & 1
        last = torch.ones_like(v, dtype=torch.bool)  # of each run of equal predictions
        torch.ne(v[1:], v[:-1], out=last[:-1])
        end = last.nonzero().squeeze(1)
        if weight is None:  # counts, which differences of sums give exactly
            ones = _differences(y.cumsum(0)[end])
            mass = _differences(end + 1).double()
        else:
            run = last.cumsum(0).sub_(last.long())
            held = weight[order[0]]
            mass = torch.zeros_like(end, dtype=torch.float64).index_add_(0, run, held)
            ones = torch.zeros_like(mass).index_add_(0, run, held.mul_(y))
        error = ones - mass * v[end]
        return _in_norm(error, mass, norm, prob, weight)


def _rows(
    y_prob: Tensor, y_true: Tensor, sample_weight: Tensor | None
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return checked vectors: labels that can be subtracted from, weights in float64 of sum 1."""
    prob, label, weight = _checks.binary(y_prob, y_true, sample_weight)
    _checks.check_binary_values(prob, label, weight)
    if label.dtype == torch.bool:
        label = label.to(torch.uint8)
    if weight is not None:
        weight = weight.double() / weight.sum(dtype=torch.float64)
    return prob[0], label[0], weight


def _differences(sums: Tensor) -> Tensor:
    return sums.diff(prepend=sums.new_zeros(1))


def _mean(values: Tensor, prob: Tensor, weight: Tensor | None) -> Tensor:
    """Return the sum of values in proportion to the mass of all rows, which is 1 with weights."""
    return values.sum() / (len(prob) if weight is None else 1)


def _in_norm(
    error: Tensor, mass: Tensor, norm: float, prob: Tensor, weight: Tensor | None
) -> Tensor:
    """Put together the errors of bins or predictions, each the mass times the deviation."""
    error = error.abs()
    if norm == 1:
        return _mean(error, prob, weight)
    deviation = torch.where(mass > 0, error / mass, 0.0)
    if norm == 2:
        return _mean(error * deviation, prob, weight).sqrt()
    return deviation.amax()
