r"""Sums of a kernel around every row: compiled on the CPU, in PyTorch's operations elsewhere.

The Laplace kernel needs two sums for each row i of the sorted predictions, over the rows up to it
and over those from it on,

.. math::
    L_i = \sum_{j \le i} c_j e^{-(v_i - v_j)/h}, \qquad
    R_i = \sum_{j \ge i} c_j e^{-(v_j - v_i)/h}.

Each is one cumulative sum of :math:`c_j e^{\pm v_j/h}`, as long as these powers are floats. For
smaller bandwidths they are made by doubling: the sum over 2k rows is the sum over the last k rows,
plus the sum over the k rows before them, decayed. Nothing is subtracted, so that rounding errors
stay in proportion to the terms.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from caldist.kernels import loader
from caldist.torch._gaussian import gaussian_sums

_COMPILED_ON = ("cpu",)  # tests empty it, and sum in PyTorch on the CPU
_NARROW = 1e-3  # the least bandwidth of cumulative sums: exp(1/(2 h)) and its inverse are floats
_DENSE = 8192  # rows up to which all pairs are faster than the Gaussian's expansion
_PAIRS = 2**25  # at a time


def kernel_sums(kernel: str, v: Tensor, c: Tensor, h: float, highest: int) -> list[Tensor]:
    r"""Return :math:`\sum_j c_j K^{(r)}(v_i - v_j)` for r = 0, …, highest, at most 2.

    ``v`` and ``c`` are float64 of the shape (problems, rows) or (rows,), ``v`` sorted along its
    rows. In the Laplace kernel equal predictions have slope and curvature 0 on each other, as
    automatic differentiation of :math:`|u - v|` gives: sign(0) = 0.
    """
    if v.device.type in _COMPILED_ON:
        return _compiled_sums(kernel, v, c, h, highest)
    if kernel == "laplace":
        return laplace_sums(v, c, h, highest)
    return (pair_sums if v.shape[-1] <= _DENSE else gaussian_sums)(v, c, h, highest)


def _compiled_sums(kernel: str, v: Tensor, c: Tensor, h: float, highest: int) -> list[Tensor]:
    write = loader.laplace.sums if kernel == "laplace" else loader.gaussian.sums
    rows = [np.atleast_2d(part.contiguous().numpy()) for part in (v, c)]
    sums = np.empty((highest + 1, *v.shape))
    by_problem = sums.reshape(highest + 1, *rows[0].shape)
    for k in range(len(rows[0])):
        value, first, second = (by_problem[r, k] if r <= highest else np.empty(0) for r in range(3))
        write(rows[0][k], rows[1][k], h, value, first, second)
    return list(torch.from_numpy(sums))


def laplace_sums(v: Tensor, c: Tensor, h: float, highest: int) -> list[Tensor]:
    """Return the sums of the Laplace kernel, as ``kernel_sums``, where the tensors are."""
    v = v.contiguous()
    first = torch.searchsorted(v, v)  # of each run of equal predictions, and the first row after it
    after = torch.searchsorted(v, v, right=True)
    found = (_by_powers if h >= _NARROW else _by_doubling)(v, c, h, first, after, highest)
    for order, sums in enumerate(found):
        for _ in range(order):  # a product with 1/h, which may overflow, would be 0 times infinity
            sums.div_(h)
    return found


def _by_powers(
    v: Tensor, c: Tensor, h: float, first: Tensor, after: Tensor, highest: int
) -> list[Tensor]:
    """Return the sums over all rows, and over larger predictions less and with smaller ones."""
    up = (v - 0.5).div_(h).exp_()
    down = up.reciprocal()
    sums = c.new_zeros(
        (2, *c.shape[:-1], c.shape[-1] + 1)
    )  # over the first rows, and the last ones
    before, beyond = sums.unbind()
    torch.cumsum(c * up, -1, out=before[..., 1:])
    torch.cumsum((c * down).flip(-1), -1, out=beyond[..., 1:])
    above = beyond.gather(-1, v.shape[-1] - after).mul_(up)
    smaller = before.gather(-1, first)
    total = torch.addcmul(above, before.gather(-1, after), down)
    signs = (-1, 1)[:highest]
    return [total, *(torch.addcmul(above, smaller, down, value=sign) for sign in signs)]


def _by_doubling(
    v: Tensor, c: Tensor, h: float, first: Tensor, after: Tensor, highest: int
) -> list[Tensor]:
    """Return the same for any bandwidth."""
    n = v.shape[-1]
    upto = _decayed(v, c, h)
    onwards = _decayed(-v.flip(-1), c.flip(-1), h).flip(-1)
    below, above = (
        torch.exp(-(v - v.gather(-1, at)).abs() / h).mul_(sums.gather(-1, at)).masked_fill_(none, 0)
        for sums, at, none in (
            (upto, (first - 1).clamp_(min=0), first == 0),
            (onwards, after.clamp(max=n - 1), after == n),
        )
    )
    total = upto.gather(-1, after - 1) + above
    return [total, *(torch.add(above, below, alpha=sign) for sign in (-1, 1)[:highest])]


def _decayed(v: Tensor, c: Tensor, h: float) -> Tensor:
    """Return the sum of the c of each row and of those before it, which decay with the distance."""
    sums, k = c, 1
    while k < v.shape[-1]:
        before = torch.exp((v[..., :-k] - v[..., k:]) / h).mul_(sums[..., :-k])
        sums = torch.cat((sums[..., :k], sums[..., k:] + before), dim=-1)
        k *= 2
    return sums


def pair_sums(v: Tensor, c: Tensor, h: float, highest: int) -> list[Tensor]:
    """Return the sums of the Gaussian kernel, as ``kernel_sums``, from all pairs of rows."""
    parts = []
    for rows in torch.split(v, max(1, _PAIRS // v.numel()), dim=-1):
        apart = rows[..., :, None] / h - v[..., None, :] / h
        kernel = (apart * apart).neg_().exp_()
        sums = [kernel @ c[..., None]]
        if highest > 0:
            sums.append((apart * kernel) @ c[..., None] * (-2 / h))
        if highest > 1:
            sums.append((apart * apart * kernel) @ c[..., None] * (4 / h / h) - 2 / h / h * sums[0])
        parts.append([total.squeeze(-1) for total in sums])
    return [torch.cat(sums, dim=-1) for sums in zip(*parts, strict=True)]
