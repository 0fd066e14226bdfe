"""Measures of tensors on a GPU, each in as few launches as it takes.

At a million rows a launch takes longer than what it launches. So the check of the values is in the
kernel that reads them first: it writes to the host's memory if something is wrong, and the host
waits for that kernel alone.
"""

# Types are Triton's own here, which no checker knows.
# mypy: ignore-errors
# ruff: noqa: ANN001, ANN202, N803

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

from caldist.data.grid import PLACE_BITS
from caldist.torch import _checks
from caldist.torch._triton import Check, outcomes, packed
from caldist.torch._triton_launch import launch

ROWS = 1024  # in a block
SEVERAL = 2048  # blocks that brier_score runs, each over many rows
COPIES = 1024  # of the bins, so that rows do not wait for each other
MOST_BINS = 1024  # more are left to torch
METRIC_COPIES = 8
MOST_ROWS = 2**30
_AT_ONCE = 2048  # sums of bins that are read at a time
_KINDS = {1: 1, 2: 2, "max": 0, math.inf: 0}  # of norms


@triton.jit
def _read(prob, label, bad, at, n):
    """Return predictions and labels in float64; say if a value is bad."""
    inside = at < n
    p = tl.load(prob + at, mask=inside, other=0.0)
    if p.dtype != tl.float64:
        p = p.to(tl.float32)
    p = p.to(tl.float64)
    y = tl.load(label + at, mask=inside, other=0)
    good = (p >= 0.0) & (p <= 1.0) & ((y == 0) | (y == 1))
    if tl.min(good.to(tl.int32), axis=0) == 0:
        tl.store(bad, 1)
    return p, (y != 0).to(tl.float64), inside


@triton.jit
def _squares(prob, label, bad, sums, n, ROWS: tl.constexpr, SEVERAL: tl.constexpr):
    total = tl.zeros((ROWS,), tl.float64)
    for start in range(tl.program_id(0) * ROWS, n, SEVERAL * ROWS):
        p, y, _ = _read(prob, label, bad, start + tl.arange(0, ROWS), n)
        total += (y - p) * (y - p)
    tl.store(sums + tl.program_id(0), tl.sum(total, 0))


@triton.jit(do_not_specialize=["n_bins"])
def _bins(
    prob, label, bad, sums, n, n_bins, MASS: tl.constexpr, ROWS: tl.constexpr, COPIES: tl.constexpr
):
    """Add up residuals, and rows if asked for, in each bin, in one of the copies."""
    at = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    p, y, inside = _read(prob, label, bad, at, n)
    width = tl.cast(n_bins, tl.float64)
    # The edges are k/n_bins as float64 has them, which the product may just miss.
    k = tl.minimum(tl.maximum(p * width, 0.0), width - 1).to(tl.int32)
    k -= ((p < k.to(tl.float64) / width) & (k > 0)).to(tl.int32)
    k += ((p >= (k + 1).to(tl.float64) / width) & (k + 1 < n_bins)).to(tl.int32)
    place = sums + (at & (COPIES - 1)) * n_bins + k
    tl.atomic_add(place, y - p, mask=inside, sem="relaxed")
    if MASS:
        tl.atomic_add(place + COPIES * n_bins, inside.to(tl.float64), mask=inside, sem="relaxed")


@triton.jit
def _put_together(error, mass, n, NORM: tl.constexpr):
    """Return what the bins or predictions of a block add to the mean, or their largest."""
    error = tl.abs(error)
    if NORM == 1:
        return tl.sum(error, 0) / tl.cast(n, tl.float64)
    deviation = tl.where(mass > 0, error / tl.maximum(mass, 1.0), 0.0)
    if NORM == 2:
        return tl.sum(error * deviation, 0) / tl.cast(n, tl.float64)
    return tl.max(deviation, 0)


@triton.jit(do_not_specialize=["n_bins"])
def _finish_bins(
    sums, result, n, n_bins, NORM: tl.constexpr, BINS: tl.constexpr, COPIES: tl.constexpr,
    AT_ONCE: tl.constexpr,
):  # fmt: skip
    k = tl.arange(0, BINS)
    inside = (k < n_bins)[None, :]
    error = tl.zeros((AT_ONCE, BINS), tl.float64)
    mass = tl.zeros((AT_ONCE, BINS), tl.float64)
    for start in range(0, COPIES, AT_ONCE):
        copy = start + tl.arange(0, AT_ONCE)
        place = sums + copy[:, None] * n_bins + k[None, :]
        error += tl.load(place, mask=inside, other=0.0)
        if NORM != 1:
            mass += tl.load(place + COPIES * n_bins, mask=inside, other=0.0)
    found = _put_together(tl.sum(error, 0), tl.sum(mass, 0), n, NORM)
    tl.store(result, tl.sqrt(found) if NORM == 2 else found)


@triton.jit
def _later(a, b):
    return tl.maximum(a, b)


@triton.jit
def _first(key, wanted, low, high):
    """Return the first place of sorted keys, from low to high, that is not below the wanted."""
    while low < high:
        middle = (low + high) // 2
        if tl.load(key + middle) < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@triton.jit
def _runs(key, parts, n, FLOAT: tl.constexpr, NORM: tl.constexpr, ROWS: tl.constexpr):
    """Write what the runs of equal predictions that end in a block add.

    Labels of 0 come first in a run: where it begins, where the first 1 is and where it ends are all
    that counts.
    """
    block = tl.program_id(0)
    start = block * ROWS
    at = start + tl.arange(0, ROWS)
    inside = at < n
    k = tl.load(key + at, mask=inside, other=-2)
    before = tl.load(key + at - 1, mask=inside & (at > 0), other=-2)
    after = tl.load(key + at + 1, mask=at + 1 < n, other=-2)
    begin = start
    one = start
    first = tl.load(key + start)
    last = tl.load(key + start - 1, mask=start > 0, other=-2)
    if (last >> 1) == (first >> 1):
        begin = _first(key, (first >> 1) << 1, start * 0, start)
        one = _first(key, first | 1, begin, tl.minimum(start + ROWS, n))
    begins = tl.where((k >> 1) != (before >> 1), at, begin)
    ones = tl.where((k & 1 == 1) & (k != before), at, one)
    begins = tl.associative_scan(tl.where(inside, begins, 0), 0, _later)
    ones = tl.associative_scan(tl.where(inside, ones, 0), 0, _later)
    end = inside & ((k >> 1) != (after >> 1))
    v = (k >> 1).to(FLOAT, bitcast=True).to(tl.float64)
    mass = (at + 1 - begins).to(tl.float64)
    # A run that ends with a 0 has no 1, and the last 1 seen is of another run.
    number = tl.where(k & 1 == 1, (at + 1 - ones).to(tl.float64), 0.0)
    error = tl.where(end, number - mass * v, 0.0)
    tl.store(parts + block, _put_together(error, mass, n, NORM))


@triton.jit
def _cells(
    prob, label, bad, sums, n, count, BITS: tl.constexpr, PLACE_BITS: tl.constexpr,
    COPIES: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Count rows, and add up places and their squares, in each cell and label."""
    at = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    p, y, inside = _read(prob, label, bad, at, n)
    p = tl.minimum(tl.maximum(p, 0.0), 1.0)  # what is none is counted nowhere in the end
    scaled = p * (1 << BITS)
    place = (scaled * (1 << PLACE_BITS)).to(tl.int64)
    code = 2 * (place >> PLACE_BITS).to(tl.int32) + y.to(tl.int32)
    place &= (1 << PLACE_BITS) - 1
    fraction = scaled - scaled.to(tl.int64).to(tl.float64)
    square = (fraction * fraction * (1 << PLACE_BITS)).to(tl.int64)
    one = inside.to(tl.int64)
    lowest = tl.min(tl.where(inside, code, 0x7FFFFFFF), 0)
    highest = tl.max(tl.where(inside, code, -1), 0)
    sums += 3 * count * (tl.program_id(0) & (COPIES - 1))
    if lowest == highest:  # one adds for all, so that they do not wait for each other
        alone = sums + 3 * lowest
        tl.atomic_add(alone, tl.sum(one, 0), sem="relaxed")
        tl.atomic_add(alone + 1, tl.sum(tl.where(inside, place, 0), 0), sem="relaxed")
        tl.atomic_add(alone + 2, tl.sum(tl.where(inside, square, 0), 0), sem="relaxed")
    else:
        each = sums + 3 * code
        tl.atomic_add(each, one, mask=inside, sem="relaxed")
        tl.atomic_add(each + 1, place, mask=inside, sem="relaxed")
        tl.atomic_add(each + 2, square, mask=inside, sem="relaxed")


def fits(prob: Tensor) -> bool:
    """Return whether rows are where these kernels run, and not too many for 32-bit places."""
    return prob.is_cuda and prob.is_floating_point() and len(prob) < MOST_ROWS


def brier_score(prob: Tensor, label: Tensor) -> Tensor:
    """Return the mean of the squares."""
    n = len(prob)
    with torch.cuda.device(prob.device):
        check = Check()
        sums = prob.new_empty(min(SEVERAL, triton.cdiv(n, ROWS)), dtype=torch.float64)
        read = prob, outcomes(label), check.flag
        launch(_squares, (len(sums),), *read, sums, n, ROWS, SEVERAL)
        check.launched()
        result = sums.sum() / n
        _fail_if_bad(check, prob, label)
    return result


def binned_ece(prob: Tensor, label: Tensor, n_bins: int, norm: object) -> Tensor:
    """Return the error in bins of equal width, at most MOST_BINS."""
    n, kind = len(prob), _KINDS[norm]
    with torch.cuda.device(prob.device):
        check = Check()
        number = COPIES * n_bins * (1 if kind == 1 else 2)
        sums = torch.zeros(number, dtype=torch.float64, device=prob.device)
        read = prob, outcomes(label), check.flag
        launch(_bins, (triton.cdiv(n, ROWS),), *read, sums, n, n_bins, kind != 1, ROWS, COPIES)
        check.launched()
        result, bins = sums.new_empty(()), triton.next_power_of_2(n_bins)
        at_once = min(COPIES, max(1, _AT_ONCE // bins))
        launch(_finish_bins, (1,), sums, result, n, n_bins, kind, bins, COPIES, at_once)
        _fail_if_bad(check, prob, label)
    return result


def ece(prob: Tensor, label: Tensor, norm: float) -> Tensor:
    """Return the errors of all distinct predictions, put together; float32 or float64."""
    n, kind = len(prob), _KINDS[norm]
    with torch.cuda.device(prob.device):
        key, check = packed(prob, label)
        key = key.sort().values
        parts = prob.new_empty(triton.cdiv(n, ROWS), dtype=torch.float64)
        number = tl.float32 if prob.dtype == torch.float32 else tl.float64
        launch(_runs, (len(parts),), key, parts, n, number, kind, ROWS)
        result = parts.sum() if kind else parts.amax()
        _fail_if_bad(check, prob, label)
    return result.sqrt() if kind == 2 else result


def count(cells: Tensor, prob: Tensor, label: Tensor, bits: int) -> bool:
    """Add rows to the cells of a metric; leave them as they are and return False if one is bad."""
    n, shape = len(prob), cells.shape
    with torch.cuda.device(prob.device):
        check = Check()
        copies = METRIC_COPIES if METRIC_COPIES * len(cells) <= n else 1
        sums = torch.zeros((copies, *shape), dtype=torch.int64, device=prob.device)
        options = n, len(cells), bits, PLACE_BITS, copies, ROWS
        read = prob.contiguous(), outcomes(label.contiguous()), check.flag
        launch(_cells, (triton.cdiv(n, ROWS),), *read, sums, *options)
        check.launched()
        if check.failed():
            return False
        cells += sums.sum(0) if copies > 1 else sums[0]
    return True


def _fail_if_bad(check: Check, prob: Tensor, label: Tensor) -> None:
    if check.failed():
        _checks.fail_binary(prob[None], label[None], None)
