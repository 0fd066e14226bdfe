"""Measures of tensors on a GPU, each in as few launches as it takes.

At a million rows a launch takes longer than what it launches. So the check of the values is in the
kernel that reads them first. If something is wrong it makes the result NaN, and the last kernel
says so to the host; where rows are sorted or counted it writes to the host's memory, and the host
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
from caldist.torch._triton import Answer, outcomes, packed
from caldist.torch._triton_launch import Launches, Span, kind_of, span

ROWS = 1024  # in a block
SEVERAL = 2048  # blocks that brier_score runs, each over many rows
COPIES = 1024  # of the bins, so that rows do not wait for each other
MOST_BINS = 1024  # more are left to torch
MOST_ROWS = 2**30
_AT_ONCE = 8192  # sums of bins that are read at a time
_PARTS = 4096  # parts of a sum that are read at a time
SAMPLE = 1024  # rows that say which cells of a metric have many
MANY = 10  # of the sample
MOST_FULL = 16  # cells with many rows, that are known of
# Where rows are added up that a metric counts, their number is above these bits of their places.
_ABOVE = tl.constexpr(44)
_GOOD = tl.constexpr(1)  # what the host is told of the values
_BAD = tl.constexpr(2)
_POWERS = {1: 1, 2: 2, "max": 0, math.inf: 0}  # of norms


@triton.jit
def _read(prob, label, at, n):
    """Return predictions and labels in float64, which rows there are, and whether all are good."""
    inside = at < n
    p = tl.load(prob + at, mask=inside, other=0.0)
    if p.dtype != tl.float64:
        p = p.to(tl.float32)
    p = p.to(tl.float64)
    y = tl.load(label + at, mask=inside, other=0)
    good = (p >= 0.0) & (p <= 1.0) & ((y == 0) | (y == 1))
    return p, (y != 0).to(tl.float64), inside, tl.min(good.to(tl.int32), axis=0)


@triton.jit
def _squares(prob, label, parts, n, ROWS: tl.constexpr, SEVERAL: tl.constexpr):
    total = tl.zeros((ROWS,), tl.float64)
    good = 1
    for start in range(tl.program_id(0) * ROWS, n, SEVERAL * ROWS):
        p, y, _, here = _read(prob, label, start + tl.arange(0, ROWS), n)
        total += (y - p) * (y - p)
        good = tl.minimum(good, here)
    tl.store(parts + tl.program_id(0), tl.where(good > 0, tl.sum(total, 0), float("nan")))


@triton.jit(do_not_specialize=["n_bins"])
def _bins(
    prob, label, sums, n, n_bins, MASS: tl.constexpr, ROWS: tl.constexpr, COPIES: tl.constexpr
):
    """Add up residuals, and rows if asked for, in each bin, in one of the copies."""
    at = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    p, y, inside, good = _read(prob, label, at, n)
    if good == 0:
        tl.atomic_add(sums, float("nan"), sem="relaxed")
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
def _put_together(error, mass, NORM: tl.constexpr):
    """Return what the bins or predictions of a block add to the sum, or their largest."""
    error = tl.abs(error)
    if NORM == 1:
        return tl.sum(error, 0)
    deviation = tl.where(mass > 0, error / tl.maximum(mass, 1.0), 0.0)
    if NORM == 2:
        return tl.sum(error * deviation, 0)
    return tl.max(deviation, 0)


@triton.jit
def _mean(total, n, NORM: tl.constexpr):
    """Return the mean of n rows, its root, or the largest as it is."""
    if NORM:
        total = total / tl.cast(n, tl.float64)
    return tl.sqrt(total) if NORM == 2 else total


@triton.jit
def _say(answer, number):
    """Tell the host whether a number is one."""
    found = tl.where(tl.abs(number) >= 0.0, _GOOD, _BAD)  # no comparison with NaN holds
    tl.store(answer, found)


@triton.jit(do_not_specialize=["n_bins"])
def _finish_bins(
    sums, result, answer, n, n_bins, NORM: tl.constexpr, BINS: tl.constexpr,
    COPIES: tl.constexpr, AT_ONCE: tl.constexpr,
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
    error = tl.sum(error, 0)
    tl.store(result, _mean(_put_together(error, tl.sum(mass, 0), NORM), n, NORM))
    _say(answer, tl.sum(error, 0))


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
    tl.store(parts + block, _put_together(error, mass, NORM))


@triton.jit(do_not_specialize=["number"])
def _finish(
    parts, result, answer, number, n,
    NORM: tl.constexpr, SAYS: tl.constexpr, AT_ONCE: tl.constexpr,
):  # fmt: skip
    """Put together the parts of blocks, which are sums, or largest deviations if NORM is 0."""
    total = tl.zeros((AT_ONCE,), tl.float64)
    for start in range(0, number, AT_ONCE):
        at = start + tl.arange(0, AT_ONCE)
        part = tl.load(parts + at, mask=at < number, other=0.0)
        total = total + part if NORM else tl.maximum(total, part)
    found = tl.sum(total, 0) if NORM else tl.max(total, 0)
    tl.store(result, _mean(found, n, NORM))
    if SAYS:
        _say(answer, found)


@triton.jit
def _places(p, BITS: tl.constexpr, PLACE_BITS: tl.constexpr):
    """Return the cells of predictions, their places in them, and the squares of these."""
    p = tl.minimum(tl.maximum(p, 0.0), 1.0)  # what is none is taken off again
    scaled = p * (1 << BITS)
    place = (scaled * (1 << PLACE_BITS)).to(tl.int64)
    fraction = scaled - scaled.to(tl.int64).to(tl.float64)
    square = (fraction * fraction * (1 << PLACE_BITS)).to(tl.int64)
    return (place >> PLACE_BITS).to(tl.int32), place & ((1 << PLACE_BITS) - 1), square


@triton.jit
def _fullest(
    prob, label, work, full, n, BITS: tl.constexpr, PLACE_BITS: tl.constexpr,
    SAMPLE: tl.constexpr, MANY: tl.constexpr, MOST_FULL: tl.constexpr,
):  # fmt: skip
    """Write how many cells have many rows of a sample, and which, as many as are wanted."""
    lane = tl.arange(0, SAMPLE)
    p, _, _, _ = _read(prob, label, (lane.to(tl.int64) * n // SAMPLE).to(tl.int32), n)
    cell, _, _ = _places(p, BITS, PLACE_BITS)
    cell = tl.sort(cell)
    tl.store(work + lane, cell)
    tl.debug_barrier()
    before = tl.load(work + lane - (MANY - 1), mask=lane >= MANY - 1, other=-1)
    after = tl.load(work + lane + 1, mask=lane + 1 < SAMPLE, other=-1)
    many = (cell == before) & (cell != after)  # the last of a run says so
    upto = tl.cumsum(many.to(tl.int32), 0)
    tl.store(full + upto, cell, mask=many & (upto <= MOST_FULL))
    tl.store(full, tl.minimum(tl.max(upto, 0), MOST_FULL))


@triton.jit
def _add_4(a1, b1, c1, d1, a2, b2, c2, d2):
    return a1 + a2, b1 + b2, c1 + c2, d1 + d2


@triton.jit
def _add_together(cells, cell, chosen, y, packed, square, SIGN: tl.constexpr):
    """Let one add for all rows that are chosen, all of one cell."""
    zero, one = chosen & (y == 0), chosen & (y == 1)
    all0, all1, square0, square1 = tl.reduce(
        (
            tl.where(zero, packed, 0), tl.where(one, packed, 0),
            tl.where(zero, square, 0), tl.where(one, square, 0),
        ), 0, _add_4,
    )  # fmt: skip
    number0, number1 = all0 >> _ABOVE, all1 >> _ABOVE
    cells += 6 * cell
    tl.atomic_add(cells, SIGN * number0, mask=number0 > 0, sem="relaxed")
    tl.atomic_add(cells + 1, SIGN * (all0 & ((1 << _ABOVE) - 1)), mask=number0 > 0, sem="relaxed")
    tl.atomic_add(cells + 2, SIGN * square0, mask=number0 > 0, sem="relaxed")
    tl.atomic_add(cells + 3, SIGN * number1, mask=number1 > 0, sem="relaxed")
    tl.atomic_add(cells + 4, SIGN * (all1 & ((1 << _ABOVE) - 1)), mask=number1 > 0, sem="relaxed")
    tl.atomic_add(cells + 5, SIGN * square1, mask=number1 > 0, sem="relaxed")


@triton.jit
def _cells(
    prob, label, bad, full, cells, n, BITS: tl.constexpr, PLACE_BITS: tl.constexpr,
    SIGN: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Count rows, and add up places and their squares, in each cell and label.

    Rows that add to one number wait for each other. So those of a cell that has many are added up
    in each block first: predictions that are very sure, constant, or of few values.
    """
    at = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    p, y, left, good = _read(prob, label, at, n)
    if good == 0:
        tl.store(bad, 1)
    y = y.to(tl.int32)
    cell, place, square = _places(p, BITS, PLACE_BITS)
    packed = place + (1 << _ABOVE)
    for k in range(tl.load(full)):
        one = tl.load(full + 1 + k)
        _add_together(cells, one, left & (cell == one), y, packed, square, SIGN)
        left = left & (cell != one)
    each = cells + 6 * cell + 3 * y
    tl.atomic_add(each, SIGN * (packed >> _ABOVE), mask=left, sem="relaxed")
    tl.atomic_add(each + 1, SIGN * place, mask=left, sem="relaxed")
    tl.atomic_add(each + 2, SIGN * square, mask=left, sem="relaxed")


def fits(prob: Tensor) -> bool:
    """Return whether rows are where these kernels run, and not too many for 32-bit places."""
    return prob.is_cuda and prob.is_floating_point() and len(prob) < MOST_ROWS


def brier_score(prob: Tensor, label: Tensor) -> Tensor:
    """Return the mean of the squares."""
    n, p, y = len(prob), span(prob), span(outcomes(label))
    with torch.cuda.device(prob.get_device()):
        number = min(SEVERAL, triton.cdiv(n, ROWS))
        parts = torch.empty(number, dtype=torch.float64, device=prob.device)
        launch = Launches(*kind_of(n, p, y))
        launch(_squares, (number,), p, y, span(parts), n, ROWS, SEVERAL)
        answer = Answer()
        result = _finished(launch, parts, n, 1, answer, says=True)
        _fail_if_bad(answer, prob, label)
    return result


def binned_ece(prob: Tensor, label: Tensor, n_bins: int, norm: object) -> Tensor:
    """Return the error in bins of equal width, at most MOST_BINS."""
    n, p, y, power = len(prob), span(prob), span(outcomes(label)), _POWERS[norm]
    bins, with_mass = triton.next_power_of_2(n_bins), power != 1
    with torch.cuda.device(prob.get_device()):
        number = COPIES * n_bins * (2 if with_mass else 1)
        sums = torch.zeros(number, dtype=torch.float64, device=prob.device)
        launch = Launches(*kind_of(n, p, y), power, bins)
        added = span(sums), n, n_bins, with_mass, ROWS, COPIES
        launch(_bins, (triton.cdiv(n, ROWS),), p, y, *added)
        result, answer = sums.new_empty(()), Answer()
        written = span(sums), span(result), answer.number, n, n_bins
        options = power, bins, COPIES, min(COPIES, max(1, _AT_ONCE // bins))
        launch(_finish_bins, (1,), *written, *options, num_warps=8)
        _fail_if_bad(answer, prob, label)
    return result


def ece(prob: Tensor, label: Tensor, norm: float) -> Tensor:
    """Return the errors of all distinct predictions, put together; float32 or float64."""
    n, power = len(prob), _POWERS[norm]
    with torch.cuda.device(prob.get_device()):
        key, bad = packed(prob, label)
        key = key.sort().values
        parts = prob.new_empty(triton.cdiv(n, ROWS), dtype=torch.float64)
        number = tl.float32 if prob.dtype == torch.float32 else tl.float64
        launch, sorted_key = Launches(*kind_of(n), key.dtype, power), span(key)
        launch(_runs, (len(parts),), sorted_key, span(parts), n, number, power, ROWS)
        result = _finished(launch, parts, n, power, bad, says=False)
        if bad.wait():
            _checks.fail_binary(prob[None], label[None], None)
    return result


def _finished(
    launch: Launches, parts: Tensor, n: int, power: int, answer: Answer, *, says: bool
) -> Tensor:
    """Return the mean of n rows, its root or the largest, from the parts of blocks."""
    result = parts.new_empty(())
    written = span(parts), span(result), answer.number, len(parts), n
    launch(_finish, (1,), *written, power, says, _PARTS, num_warps=8)
    return result


def _fail_if_bad(answer: Answer, prob: Tensor, label: Tensor) -> None:
    if answer.poll() == _BAD.value:
        _checks.fail_binary(prob[None], label[None], None)


def count(cells: Tensor, prob: Tensor, label: Tensor, bits: int) -> bool:
    """Add rows to the cells of a metric; leave them as they are and return False if one is bad."""
    n, prob, label = len(prob), prob.contiguous(), outcomes(label.contiguous())
    p, y, sums = span(prob), span(label), span(cells)
    with torch.cuda.device(prob.get_device()):
        launch = Launches(*kind_of(n, p, y, sums), bits)
        memory = torch.empty(SAMPLE + MOST_FULL + 1, dtype=torch.int32, device=prob.device)
        work = span(memory)
        full = Span(work.address + 4 * SAMPLE, work.dtype)
        sampled = work, full, n, bits, PLACE_BITS, SAMPLE, MANY, MOST_FULL
        launch(_fullest, (1,), p, y, *sampled, num_warps=8)
        bad, grid = Answer(), (triton.cdiv(n, ROWS),)
        rows = p, y, bad.number, full, sums, n, bits, PLACE_BITS
        launch(_cells, grid, *rows, 1, ROWS)
        bad.asked()
        if bad.wait():  # integers: what has been added can be taken off, to the bit
            launch = Launches(*kind_of(n, p, y, sums), bits, "taken off")
            launch(_cells, grid, *rows, -1, ROWS)
            return False
    return True
