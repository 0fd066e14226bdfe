r"""Sums of the Gaussian kernel :math:`e^{-((u - v)/h)^2}` and its derivatives around every row.

Predictions are put into cells of WIDTH bandwidths. With s the offset of a row from the centre of
its cell, in bandwidths, and T the distance of two centres,

.. math:: e^{-(T + s' - s)^2} = \sum_{a, b} \frac{s^a}{a!} \frac{(-s')^b}{b!}\, g_{a+b}(T),
          \qquad g_k(T) = H_k(T)\, e^{-T^2},

with the Hermite polynomials H. So the rows of a cell act through their moments, and meet the rows
of another cell as the coefficients of a polynomial in s'. As
:math:`|g_k| \le 1.09\,\sqrt{2^k k!}`, the terms left out are below
:math:`(\mathrm{WIDTH}/\sqrt2)^{\mathrm{TERMS}} / \sqrt{\mathrm{TERMS}!}`, 1e-16 of each pair; cells
more than REACH apart are at least 6 bandwidths apart, :math:`e^{-36}` = 2e-16.
"""

from __future__ import annotations

import math
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import pad

from caldist import _kernels

__all__ = ["gaussian_sums"]

WIDTH = 0.5
TERMS = 20  # two more than the value needs, for the second derivative
REACH = 13


def gaussian_sums(v: Tensor, c: Tensor, h: float, highest: int) -> list[Tensor]:
    r"""Return :math:`\sum_j c_j K^{(r)}(v_i - v_j)` for r = 0, …, highest, at most 2.

    ``v`` and ``c`` are float64 of the shape (problems, rows), ``v`` sorted along its rows.
    """
    problems = [_one_problem(*row, h, highest) for row in zip(v, c, strict=True)]
    return [torch.stack(sums) for sums in zip(*problems, strict=True)]


def _one_problem(v: Tensor, c: Tensor, h: float, highest: int) -> list[Tensor]:
    scaled = v / (WIDTH * h)
    cell = scaled.floor()
    offset = (scaled - cell - 0.5) * WIDTH
    cells, size = torch.unique_consecutive(cell, return_counts=True)
    if v.device.type == "cpu":
        start = pad(size.cumsum(0), (1, 0))
        coefficients = _coefficients(cells, _moments_by_kernel(offset, c, start), h)
        sums = _polynomials_by_kernel(offset, coefficients, start, highest)
    else:
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


def _moments_by_kernel(offset: Tensor, c: Tensor, start: Tensor) -> Tensor:
    moments = offset.new_empty(start.numel() - 1, TERMS)
    parts = (offset, c.contiguous(), start, moments.view(-1))
    _kernels.cells.moments(*(part.numpy() for part in parts))
    return moments


def _polynomials_by_kernel(
    offset: Tensor, coefficients: Tensor, start: Tensor, highest: int
) -> list[Tensor]:
    sums = [torch.empty_like(offset) for _ in range(highest + 1)]
    absent = [offset.new_empty(0)] * (2 - highest)
    parts = (offset, start, coefficients.reshape(-1), *sums, *absent)
    _kernels.cells.polynomials(*(part.numpy() for part in parts))
    return sums


def _coefficients(cells: Tensor, moments: Tensor, h: float) -> Tensor:
    """Return the polynomial of each cell: a column for each power of s'."""
    constant = partial(torch.tensor, dtype=moments.dtype, device=moments.device)
    sign = constant([(-1) ** b / math.factorial(b) for b in range(TERMS)])
    total = torch.zeros_like(moments)
    most = min(REACH, math.floor(1 / (WIDTH * h)))  # no two cells of [0, 1] are farther apart
    for distance in range(-most, most + 1):
        hermite = _hermite_functions(distance * WIDTH, 2 * TERMS - 1)
        shift = constant([hermite[b : b + TERMS] for b in range(TERMS)])
        wanted = cells - distance
        at = torch.searchsorted(cells, wanted).clamp_(max=cells.numel() - 1)
        found = cells[at] == wanted
        total += torch.where(found[:, None], moments[at].mm(shift), 0)
    return sign * total


def _hermite_functions(t: float, count: int) -> list[float]:
    """Return H_k(t) exp(-t²) for k < count."""
    values = [math.exp(-t * t), 2 * t * math.exp(-t * t)]
    for k in range(1, count - 1):
        values.append(2 * t * values[k] - 2 * k * values[k - 1])
    return values
