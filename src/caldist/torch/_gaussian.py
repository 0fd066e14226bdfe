r"""Sums of the Gaussian kernel :math:`e^{-((u - v)/h)^2}` around every row, on a GPU.

The same expansion as in ``kernels/gaussian.py``, in torch's own operations. Here every term is a
pass over the rows, and cells cost little. So cells are WIDTH bandwidths wide, which leaves
:math:`(\mathrm{WIDTH}/\sqrt2)^{18} / \sqrt{18!}` = 1e-16 of each pair to terms beyond 18; two more
serve two derivatives. Cells more than REACH apart are at least 6 bandwidths apart.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import torch
from torch import Tensor

from caldist.kernels import loader

WIDTH = 0.5
TERMS = 20
REACH = 13


def gaussian_sums(v: Tensor, c: Tensor, h: float, highest: int) -> list[Tensor]:
    r"""Return :math:`\sum_j c_j K^{(r)}(v_i - v_j)` for r = 0, …, highest, at most 2.

    ``v`` and ``c`` are float64 of the shape (problems, rows) or (rows,), ``v`` sorted along
    its rows.
    """
    if v.dim() == 1:
        return _one_problem(v, c, h, highest)
    problems = [_one_problem(*row, h, highest) for row in zip(v, c, strict=True)]
    return [torch.stack(sums) for sums in zip(*problems, strict=True)]


def _one_problem(v: Tensor, c: Tensor, h: float, highest: int) -> list[Tensor]:
    scaled = v / (WIDTH * h)
    cell = scaled.floor()
    offset = (scaled - cell - 0.5) * WIDTH
    cells, size = torch.unique_consecutive(cell, return_counts=True)
    coefficients = _coefficients(cells, _moments(offset, c, size), h)
    sums = _polynomials(offset, coefficients, size, highest)
    # Powers of 1/h may reach 0, which is right; those of h may overflow, which is an error.
    return [total.mul_((1 / h) ** r) for r, total in enumerate(sums)]


def _moments(offset: Tensor, c: Tensor, size: Tensor) -> Tensor:
    """Return the sums of c s^a/a! over each cell, a column for each a < TERMS."""
    moments = []
    term = c
    for a in range(TERMS):
        moments.append(torch.segment_reduce(term, "sum", lengths=size))
        term = term * (offset / (a + 1))
    return torch.stack(moments, dim=1)


def _polynomials(offset: Tensor, coefficients: Tensor, size: Tensor, highest: int) -> list[Tensor]:
    """Return polynomials and their derivatives by Horner's rule, side by side."""
    sums = [torch.zeros_like(offset) for _ in range(highest + 1)]
    for k in reversed(range(TERMS)):
        for r in range(highest, 0, -1):
            sums[r].mul_(offset).add_(sums[r - 1], alpha=r)
        sums[0].mul_(offset).add_(coefficients[:, k].repeat_interleave(size))
    return sums


def _coefficients(cells: Tensor, moments: Tensor, h: float) -> Tensor:
    """Return the polynomial of each cell: a column for each power of s'."""
    constant = partial(torch.tensor, dtype=moments.dtype, device=moments.device)
    sign = constant([(-1) ** b / math.factorial(b) for b in range(TERMS)])
    place = np.add.outer(np.arange(TERMS), np.arange(TERMS))
    total = torch.zeros_like(moments)
    most = min(REACH, math.floor(1 / (WIDTH * h)))  # no two cells of [0, 1] are farther apart
    for distance in range(-most, most + 1):
        hermite = np.empty(2 * TERMS)
        loader.gaussian.hermite(distance * WIDTH, hermite)
        shift = constant(hermite[place])
        wanted = cells - distance
        at = torch.searchsorted(cells, wanted).clamp_(max=cells.numel() - 1)
        found = cells[at] == wanted
        total += torch.where(found[:, None], moments[at].mm(shift), 0)
    return sign * total
