"""Cells for the kernel loss on a GPU: what ``_kernel_cells`` does, in seven kernels and no sort.

1. ``_sample`` sorts a sample of the rows, a part in each block, and marks what a part has thrice.
2. ``_tally`` counts the sample in each stretch.
3. ``_share`` gives each stretch its cells.
4. ``_count`` reads all rows, checks them and counts them in cells.
5. ``_gather`` adds up the copies of marks with many rows.
6. ``_summarise`` reduces each block of cells to what it adds to the cells below and above it.
7. ``_solve`` writes P and D of each cell, and each block's part of the sums of the certificate.

``_write`` reads all rows once more, and writes the gradient.
"""

# Types are Triton's own here, which no checker knows.
# mypy: ignore-errors
# ruff: noqa: ANN001, ANN202, N803, N806

from __future__ import annotations

import struct

import torch
import triton
import triton.language as tl
from torch import Tensor

from caldist.torch import _cells_layout as layout
from caldist.torch._cells_layout import Plan
from caldist.torch._triton import outcomes
from caldist.torch._triton_launch import launch

_ONE = tl.constexpr(layout.ONE)
_STRETCH = tl.constexpr(layout.STRETCH)
_FLOATS = tl.constexpr(layout.FLOATS)
_STRETCHES = tl.constexpr(layout.STRETCHES)
_SEARCHES = tl.constexpr(layout.STRETCHES.bit_length())
_FINER = tl.constexpr(layout.FINER)
_CELLS = tl.constexpr(layout.CELLS)
_APART = tl.constexpr(triton.cdiv(layout.CELLS, 16))
_TABLE = tl.constexpr(32 * triton.cdiv(layout.CELLS, 16))
_SPARED = tl.constexpr(layout.SPARED)
_MANY = tl.constexpr(layout.MANY)
_COPIES = tl.constexpr(layout.COPIES)
_NO_MARK = tl.constexpr(layout.NO_MARK)
_PLACES = tl.constexpr(layout.PLACES)
_ROW = tl.constexpr(1 << layout.PLACES)
_PLACE_BITS = tl.constexpr(layout.PLACE_BITS)
_ROUNDED = tl.constexpr(layout.ROUNDED)

ROWS = 1024  # in a block
TOGETHER = 2048  # of the sample
CHUNK = 8192  # stretches that _share takes at a time
HEAVY = layout.SAMPLE // layout.MANY  # marks with copies, at most
BLOCK = 1024  # cells
BLOCKS = triton.cdiv(layout.CELLS, BLOCK)
ALL_BLOCKS = tl.constexpr(triton.next_power_of_2(BLOCKS))
SUMS = 8


@triton.jit
def _bits(given):
    """Return bits that order like predictions; what is no prediction is made one."""
    return tl.minimum(given & 0x7FFFFFFF, _ONE)


@triton.jit
def _double(bits):
    """Return a float64 argument, which Triton takes as float32 if it is not hidden in its bits."""
    return tl.cast(bits, tl.float64, bitcast=True)


@triton.jit
def _log2(count):
    """Return the logarithm of a small positive integer, rounded down."""
    return (count.to(tl.float32).to(tl.int32, bitcast=True) >> 23) - 127


@triton.jit
def _sample(prob, sample, mark, n, TOGETHER: tl.constexpr, SAMPLE: tl.constexpr):
    """Sort a part of the sample; write the largest of each stretch that it has thrice, plus 1."""
    lane = tl.arange(0, TOGETHER)
    at = tl.program_id(0) * TOGETHER + lane
    chosen = at.to(tl.int64) * n // SAMPLE
    bits = tl.sort(_bits(tl.load(prob + chosen)))
    tl.store(sample + at, bits)
    tl.debug_barrier()
    before = tl.load(sample + at - 2, mask=lane > 1, other=-1)
    after = tl.load(sample + at + 1, mask=lane + 1 < TOGETHER, other=-1)
    thrice = (bits == before) & (bits != after)  # the last of a run does it
    tl.atomic_max(mark + (bits >> _STRETCH), bits + 1, mask=thrice, sem="relaxed")


@triton.jit
def _tally(sample, mark, number, TOGETHER: tl.constexpr):
    """Count the rows of each stretch that are not at its mark, and those that are."""
    lane = tl.arange(0, TOGETHER)
    sample += tl.program_id(0) * TOGETHER
    bits = tl.load(sample + lane)
    at = bits >> _STRETCH
    marked = bits + 1 == tl.load(mark + at)
    # If all are equal one adds for all, so that they do not wait for each other.
    several = tl.load(sample) != tl.load(sample + TOGETHER - 1)
    adding = (lane == 0) | several
    amount = tl.where(several, 1, TOGETHER)
    tl.atomic_add(number + 2 * at + marked.to(tl.int32), amount, mask=adding, sem="relaxed")


@triton.jit
def _share(number, mark, stretch, copies, heavy, CHUNK: tl.constexpr):
    """Write what ``_cells_layout.Plan`` says of each stretch, and a list of those with copies."""
    carried = tl.zeros((), tl.int64)  # cells, copies and marks with copies so far, in one
    for start in range(0, _STRETCHES, CHUNK):
        at = start + tl.arange(0, CHUNK)
        inside = at < _STRETCHES
        others = tl.load(number + 2 * at, mask=inside, other=0)
        alike = tl.load(number + 2 * at + 1, mask=inside, other=0)
        marked = tl.load(mark + at, mask=inside, other=0)
        halvings = tl.where(others > 0, _log2(tl.maximum(others, 1)) + _FINER, 0)
        halvings = tl.minimum(halvings, _STRETCH)
        many = alike >= _MANY
        doublings = tl.maximum(_log2(tl.maximum(alike, 1)) - _SPARED, 0)
        size = (1 << halvings) + tl.where(marked > 0, 2, 0)
        held = tl.where(many, 1 << doublings, 0)
        added = size.to(tl.int64) + (held.to(tl.int64) << 24) + (many.to(tl.int64) << 44)
        upto = carried + tl.cumsum(added, 0)
        carried = tl.max(upto, 0)
        first = ((upto - added) & 0xFFFFFF).to(tl.int32)
        place = (((upto - added) >> 24) & 0xFFFFF).to(tl.int32)
        position = ((upto - added) >> 44).to(tl.int32)
        packed = first * 16 + _STRETCH - halvings
        marked = tl.where(marked > 0, marked - 1, _NO_MARK)
        tl.store(stretch + at, packed.to(tl.int64) + (marked.to(tl.int64) << 32), mask=inside)
        tl.store(copies + at, tl.where(many, place * 16 + doublings, -1), mask=inside)
        tl.store(heavy + position, at + 1, mask=many)


@triton.jit
def _unpacked(stretch, at):
    """Return the first cell of stretches, the bits in which floats of a cell differ, the mark."""
    packed = tl.load(stretch + at)
    low = packed.to(tl.int32)
    return low >> 4, low & 15, (packed >> 32).to(tl.int32)


@triton.jit
def _cell_of(bits, stretch):
    """Return the cell of predictions, the bits in which floats of it differ, and the mark."""
    first, width, marked = _unpacked(stretch, bits >> _STRETCH)
    cell = first + ((bits & _FLOATS) >> width)
    return cell + (bits >= marked).to(tl.int32) + (bits > marked).to(tl.int32), width, marked


@triton.jit
def _entry(cell, label):
    """Return where the sums of a cell are: neighbours apart, as they would wait for each other."""
    return ((cell & 15) * 2 + label) * _APART + (cell >> 4)


@triton.jit
def _count(prob, label, stretch, copies, table, bad, n, ROWS: tl.constexpr):
    at = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = at < n
    p = tl.load(prob + at, mask=inside, other=0.0)
    y = tl.load(label + at, mask=inside, other=0)
    good = (p >= 0.0) & (p <= 1.0) & ((y == 0) | (y == 1))
    if tl.min(good.to(tl.int32), axis=0) == 0:
        tl.store(bad, 1.0)
    bits = _bits(p.to(tl.int32, bitcast=True))
    cell, width, marked = _cell_of(bits, stretch)
    place = (bits & _FLOATS & ((1 << width) - 1)) >> tl.maximum(width - _PLACE_BITS, 0)
    copy = tl.load(copies + (bits >> _STRETCH), mask=bits == marked, other=-1)
    y = (y != 0).to(tl.int32)
    spread = _TABLE + 2 * ((copy >> 4) + (at & ((1 << (copy & 15)) - 1))) + y
    table += tl.where(copy >= 0, spread, _entry(cell, y))
    tl.atomic_add(table, place.to(tl.int64) + _ROW, mask=inside, sem="relaxed")


@triton.jit
def _gather(stretch, copies, heavy, table, CHUNK: tl.constexpr):
    at = tl.load(heavy + tl.program_id(0)) - 1
    if at >= 0:
        _, _, marked = _unpacked(stretch, at)
        cell, _, _ = _cell_of(marked, stretch)
        copy = tl.load(copies + at)
        first = _TABLE + 2 * (copy >> 4)
        many = 2 << (copy & 15)
        lane = tl.arange(0, CHUNK)
        total0 = tl.zeros((CHUNK,), tl.int64)
        total1 = tl.zeros((CHUNK,), tl.int64)
        for start in range(0, 2 * _COPIES, CHUNK):
            place = start + lane
            amount = tl.load(table + first + place, mask=place < many, other=0)
            total0 += tl.where(place & 1 == 0, amount, 0)
            total1 += tl.where(place & 1 == 1, amount, 0)
        tl.store(table + _entry(cell, 0), tl.sum(total0, 0))
        tl.store(table + _entry(cell, 1), tl.sum(total1, 0))


@triton.jit
def _places(cell, at, stretch):
    """Return what the function of this name in ``_kernel_cells`` does, from stretches as well."""
    first, width, marked = _unpacked(stretch, at)
    number = cell - first
    cut = (marked & _FLOATS) >> width
    parts = (number > cut).to(tl.int32) + (number > cut + 1).to(tl.int32)
    parts = tl.where(marked == _NO_MARK, 0, parts)
    begin = (number - parts) << width
    here = (marked != _NO_MARK) & (number - parts == cut)
    only = (marked & _FLOATS) + parts - 1
    low = tl.where(here & (parts > 0), only, begin)
    high = tl.where(here & (parts < 2), only, begin + (1 << width) - 1)
    exponent = tl.maximum(at >> (23 - _STRETCH), 1) + (1023 - 150)
    unit = (exponent.to(tl.int64) << 52).to(tl.float64, bitcast=True)
    base = (at << _STRETCH).to(tl.float32, bitcast=True).to(tl.float64)
    step = (1 << tl.maximum(width - _PLACE_BITS, 0)).to(tl.float64)
    x = base + unit * (low + high).to(tl.float64) / 2
    r = tl.maximum(unit * (high - low).to(tl.float64) / 2, 0.0)
    return x, r, base + unit * begin.to(tl.float64), unit, step


@triton.jit
def _residuals(cell, inside, at, stretch, table, m, h):
    """Return of each cell x, r, the rows of each label, C, C₁/h, Σ|c| at most, and rounding."""
    x, r, begin, unit, step = _places(cell, at, stretch)
    packed0 = tl.load(table + _entry(cell, 0), mask=inside, other=0)
    packed1 = tl.load(table + _entry(cell, 1), mask=inside, other=0)
    n0 = (packed0 >> _PLACES).to(tl.float64)
    n1 = (packed1 >> _PLACES).to(tl.float64)
    places0 = (packed0 & (_ROW - 1)).to(tl.float64)
    places1 = (packed1 & (_ROW - 1)).to(tl.float64)
    off = tl.where(r > 0, unit * (step - 1) / 2, 0.0)
    o0 = tl.where(r > 0, unit * step * places0 + n0 * (begin + off - x), 0.0)
    o1 = tl.where(r > 0, unit * step * places1 + n1 * (begin + off - x), 0.0)
    c = m * (n1 * (1 - x) - o1 - n0 * x - o0)
    size = m * (n1 * (1 - x) - o1 + n0 * x + o0 + (n0 + n1) * off)
    first = m * ((1 - x) * o1 - x * o0) / h
    return x, r, n0, n1, c, first, size, off


@triton.jit
def _second(r, rows, h):
    return tl.where(rows > 0, r / h * (r / h) / 2 * tl.exp(r / h), 0.0)


@triton.jit
def _summarise(
    stretch, table, owner, place, blocks, n, h_bits,
    BLOCK: tl.constexpr, BLOCKS: tl.constexpr,
):  # fmt: skip
    """Write each cell's stretch and middle; each block's ends, sums and part of the error."""
    block = tl.program_id(0)
    cell = block * BLOCK + tl.arange(0, BLOCK)
    inside = cell < _CELLS
    at = tl.zeros((BLOCK,), tl.int32)
    end = tl.full((BLOCK,), _STRETCHES, tl.int32)
    for _ in tl.static_range(_SEARCHES):
        middle = (at + end) >> 1
        below = (tl.load(stretch + middle).to(tl.int32) >> 4) <= cell
        at = tl.where(below, middle, at)
        end = tl.where(below, end, middle)
    m, h = 1.0 / tl.cast(n, tl.float64), _double(h_bits)
    x, r, n0, n1, c, first, size, off = _residuals(cell, inside, at, stretch, table, m, h)
    tl.store(owner + cell, at, mask=inside)
    tl.store(place + cell, x, mask=inside)
    low, high = tl.min(x, 0), tl.max(x, 0)
    rows = n0 + n1
    error = size * _second(r, rows, h) + m * rows * (off * (1 + 1 / h) + r * r / h)
    blocks += block
    tl.store(blocks, low)
    tl.store(blocks + BLOCKS, high)
    tl.store(blocks + 2 * BLOCKS, tl.sum((c + first) * tl.exp((x - high) / h), 0))
    tl.store(blocks + 3 * BLOCKS, tl.sum((c - first) * tl.exp((low - x) / h), 0))
    tl.store(blocks + 4 * BLOCKS, tl.sum(error, 0))


@triton.jit
def _compose(d1, s1, d2, s2):
    return d1 * d2, d2 * s1 + s2


@triton.jit
def _solve(
    stretch, table, owner, place, blocks, n, h_bits, sums, pairs,
    UNBIASED: tl.constexpr, BLOCK: tl.constexpr, BLOCKS: tl.constexpr,
):  # fmt: skip
    """Write P and D of each cell, and this block's part of ``_kernel_cells.Sums``."""
    block = tl.program_id(0)
    cell = block * BLOCK + tl.arange(0, BLOCK)
    inside = cell < _CELLS
    m, h = 1.0 / tl.cast(n, tl.float64), _double(h_bits)
    own = m if UNBIASED else m * 0.0
    other = tl.arange(0, ALL_BLOCKS)
    known = other < BLOCKS
    lows = tl.load(blocks + other, mask=known, other=0.0)
    highs = tl.load(blocks + BLOCKS + other, mask=known, other=0.0)
    ups = tl.load(blocks + 2 * BLOCKS + other, mask=other < block, other=0.0)
    downs = tl.load(blocks + 3 * BLOCKS + other, mask=known & (other > block), other=0.0)
    total = _ROUNDED + tl.sum(tl.load(blocks + 4 * BLOCKS + other, mask=known, other=0.0), 0)
    low, high = tl.load(blocks + block), tl.load(blocks + BLOCKS + block)
    from_below = tl.sum(ups * tl.exp(tl.minimum(highs - low, 0.0) / h), 0)
    from_above = tl.sum(downs * tl.exp(tl.minimum(high - lows, 0.0) / h), 0)

    at = tl.load(owner + cell, mask=inside, other=0)
    x, r, n0, n1, c, first, size, off = _residuals(cell, inside, at, stretch, table, m, h)
    # Outside, and beyond the ends of the block, nothing is added: how it decays does not matter.
    more, less = inside & (cell > block * BLOCK), cell + 1 < tl.minimum((block + 1) * BLOCK, _CELLS)
    before = tl.load(place + cell - 1, mask=more, other=0.0)
    after = tl.load(place + cell + 1, mask=less, other=0.0)
    decay = tl.where(more, tl.exp((before - x) / h), 1.0)
    _, below = tl.associative_scan((decay, c + first), 0, _compose)
    below += from_below * tl.exp((low - x) / h) - (c + first)
    decay = tl.where(less, tl.exp((x - after) / h), 1.0)
    _, above = tl.associative_scan((decay, c - first), 0, _compose, reverse=True)
    above += from_above * tl.exp((x - high) / h) - (c - first)
    P, D = below + c + above, (above - below) / h
    tl.store(pairs + 2 * cell, P.to(tl.float32), mask=inside)
    tl.store(pairs + 2 * cell + 1, D.to(tl.float32), mask=inside)

    rows, steep, high_P = n0 + n1, tl.abs(D), tl.abs(P)
    second = _second(r, rows, h)
    slope = total / h + r / h / h * (tl.abs(P - c) + total) + second / h
    slope0 = slope + tl.where(r > 0, tl.maximum(size - m * (x - r), 0.0) / h, 0.0)
    slope1 = slope + tl.where(r > 0, tl.maximum(size - m * (1 - x - r), 0.0) / h, 0.0)
    potential = total + r * (steep + total / h) + second + 2 * size * r / h + m * rows * off
    near0, near1 = -x * (D + own) - P, (1 - x) * (D + own) - P
    far0, far1 = (x + r) * slope0, (1 - x + r) * slope1
    middle, rounding = r * (steep + own), steep + high_P + own
    value = c * P - own * m * (n0 * x * x + n1 * (1 - x) * (1 - x))
    error = size * potential + m * rows * (off * high_P + 2 * own * r)
    sums += block
    # An empty cell may be as wide as it likes.
    tl.store(sums + BLOCKS, _total(value, rows))
    tl.store(sums + 2 * BLOCKS, _total(error, rows))
    tl.store(sums + 3 * BLOCKS, _total(n0 * near0 * near0 + n1 * near1 * near1, rows))
    tl.store(sums + 4 * BLOCKS, _total(rows * middle * middle, rows))
    tl.store(sums + 5 * BLOCKS, _total(n0 * far0 * far0 + n1 * far1 * far1, rows))
    tl.store(sums + 6 * BLOCKS, _total(rows * potential * potential, rows))
    tl.store(sums + 7 * BLOCKS, _total(rows * rounding * rounding, rows))


@triton.jit
def _total(values, rows):
    return tl.sum(tl.where(rows > 0, values, 0.0), 0)


@triton.jit
def _write(prob, label, stretch, pairs, gradient, n, UNBIASED: tl.constexpr, ROWS: tl.constexpr):
    at = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = at < n
    p = tl.load(prob + at, mask=inside, other=0.0)
    y = tl.load(label + at, mask=inside, other=0)
    cell, _, _ = _cell_of(_bits(p.to(tl.int32, bitcast=True)), stretch)
    pair = tl.load(pairs + cell)  # one load for both
    P = (pair & 0xFFFFFFFF).to(tl.int32).to(tl.float32, bitcast=True).to(tl.float64)
    D = (pair >> 32).to(tl.int32).to(tl.float32, bitcast=True).to(tl.float64)
    rows = tl.cast(n, tl.float64)
    residual = (y != 0).to(tl.float64) - p.to(tl.float64)
    if UNBIASED:
        own, scale = 1.0 / rows, 2.0 / (rows - 1.0)
    else:
        own, scale = 0.0, 2.0 / rows
    tl.store(gradient + at, (scale * (residual * (D + own) - P)).to(tl.float32), mask=inside)


def solved(
    prob: Tensor, label: Tensor, bandwidth: float, *, unbiased: bool
) -> tuple[Plan, list[float], Tensor]:
    """Return the cells, the sums of the certificate, and what ``gradient`` reads."""
    n, cells, stretches = len(prob), layout.CELLS, layout.STRETCHES
    (h_bits,) = struct.unpack("q", struct.pack("d", bandwidth))
    with torch.cuda.device(prob.device):
        # All that begins at 0, in one piece; and all that does not.
        parts = (2 * (_TABLE.value + 2 * layout.COPIES), 2 * SUMS * BLOCKS, HEAVY, stretches)
        empty = torch.zeros(sum(parts) + 2 * stretches, dtype=torch.int32, device=prob.device)
        table, sums, heavy, mark, number = empty.split((*parts, 2 * stretches))
        table, sums = table.view(torch.int64), sums.view(torch.float64)
        sample, copies, owner = empty.new_empty(layout.SAMPLE + stretches + cells).split(
            (layout.SAMPLE, stretches, cells)
        )
        place, blocks = sums.new_empty(cells + 5 * BLOCKS).split((cells, 5 * BLOCKS))
        pairs, stretch = table.new_empty(cells + stretches).split((cells, stretches))

        groups, bits = (layout.SAMPLE // TOGETHER,), prob.view(torch.int32)
        launch(_sample, groups, bits, sample, mark, n, TOGETHER, layout.SAMPLE, num_warps=8)
        launch(_tally, groups, sample, mark, number, TOGETHER)
        launch(_share, (1,), number, mark, stretch, copies, heavy, CHUNK, num_warps=16)
        rows, read = (triton.cdiv(n, ROWS),), (prob, outcomes(label))
        launch(_count, rows, *read, stretch, copies, table, sums, n, ROWS)
        launch(_gather, (HEAVY,), stretch, copies, heavy, table, 1024)
        known = stretch, table, owner, place, blocks, n, h_bits
        launch(_summarise, (BLOCKS,), *known, BLOCK, BLOCKS, num_warps=8)
        written = sums, pairs.view(torch.float32)
        launch(_solve, (BLOCKS,), *known, *written, unbiased, BLOCK, BLOCKS, num_warps=8)
        found = sums.view(SUMS, BLOCKS).sum(1).tolist()
    return Plan(stretch, copies), found, pairs


def gradient(prob: Tensor, label: Tensor, plan: Plan, pairs: Tensor, *, unbiased: bool) -> Tensor:
    """Return the gradient of each row."""
    n = len(prob)
    with torch.cuda.device(prob.device):
        result = torch.empty_like(prob)
        rows, read = (triton.cdiv(n, ROWS),), (prob, outcomes(label), plan.stretch)
        launch(_write, rows, *read, pairs, result, n, unbiased, ROWS)
    return result
