r"""Sums of the Laplace kernel :math:`e^{-|u - v|/h}` and its derivatives around every row."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from caldist import _kernels

__all__ = ["laplace_sums", "scanned_sums"]


def laplace_sums(v: Tensor, c: Tensor, h: float, highest: int) -> list[Tensor]:
    r"""Return :math:`\sum_j c_j K^{(r)}(v_i - v_j)` for r = 0, …, highest, at most 2.

    ``v`` and ``c`` are float64 of the shape (problems, rows), ``v`` sorted along its rows. Equal
    predictions have slope and curvature 0 on each other, as automatic differentiation of
    :math:`|u - v|` gives: sign(0) = 0.
    """
    one_sided = _one_sided_by_kernel if v.device.type == "cpu" else scanned_sums
    below, equal, above = one_sided(v, c, h)
    sums = [below + equal + above]
    if highest >= 1:
        sums.append((above - below) / h)
    if highest >= 2:
        sums.append((above + below) / h / h)
    return sums


def _one_sided_by_kernel(v: Tensor, c: Tensor, h: float) -> tuple[Tensor, Tensor, Tensor]:
    v, c = v.contiguous(), c.contiguous()
    below, equal, above = torch.empty_like(v), torch.empty_like(v), torch.empty_like(v)
    rows = zip(*(part.numpy() for part in (v, c, below, equal, above)), strict=True)
    for v_row, c_row, *sums in rows:
        _kernels.decay.decaying_sums(v_row, c_row, h, *sums)
    return below, equal, above


def scanned_sums(v: Tensor, c: Tensor, h: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return what ``kernels/decay.py`` computes, in torch's own operations, on any device.

    A recursion s_i = d_i s_{i-1} + c_i is a scan by doubling: after step k, s_i holds the last 2^k
    terms and d_i the product of their factors. All factors are at most 1, so nothing overflows.
    """
    below, upwards = _below(v, c, h)
    above, downwards = (part.flip(-1) for part in _below(-v.flip(-1), c.flip(-1), h))
    return below, upwards + downwards - c - below - above, above


def _below(v: Tensor, c: Tensor, h: float) -> tuple[Tensor, Tensor]:
    """Return the decayed sums of the rows with smaller v, and of all rows up to each row."""
    n = v.shape[-1]
    gap = v.diff(dim=-1)
    factor = pad((gap / -h).exp(), (1, 0))  # the first row has nothing before it
    decay, total = factor.clone(), c.clone()
    step = 1
    while step < n:
        total[..., step:] += decay[..., step:] * total[..., :-step].clone()
        decay[..., step:] *= decay[..., :-step].clone()
        step *= 2
    # Equal predictions share the sum before the first of them.
    place = torch.arange(1, n, device=v.device).expand_as(gap)
    first = pad(torch.where(gap > 0, place, 0), (1, 0)).cummax(dim=-1).values
    before = factor * pad(total[..., :-1], (1, 0))
    return before.gather(-1, first), total
