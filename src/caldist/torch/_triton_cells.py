"""Cells for the kernel loss on a GPU: what ``_kernel_cells`` does, in ten kernels and no sort.

1. ``_sample`` sorts a sample of the rows, a part in each block, and marks what a part has thrice.
2. ``_tally`` counts the sample in each stretch.
3. ``_share`` gives each stretch its cells.
4. ``_count`` reads all rows, checks them and counts them in cells.
5. ``_gather`` adds up the copies of marks with many rows.
6. ``_summarise`` reduces each block of cells to what it adds to the cells below and above it.
7. ``_carry`` runs over the blocks, from both ends.
8. ``_solve`` writes P and D of each cell, and each block's part of the sums of the certificate.
9. ``_certify`` adds these up, and says to the GPU and to the host whether they prove the tolerance.
10. ``_write`` reads all rows once more and writes the gradient, if they do.

All are launched before the host waits for the ninth: the last one is at work while the host hears
of the proof and begins with the backward pass.
"""

# Types are Triton's own here, which no checker knows.
# mypy: ignore-errors
# ruff: noqa: ANN001, ANN202, N803, N806

from __future__ import annotations

import struct
import sys

import torch
import triton
import triton.language as tl
from torch import Tensor

from caldist.torch import _cells_layout as layout
from caldist.torch import _checks
from caldist.torch._triton import Answer, outcomes
from caldist.torch._triton_launch import Launches, Span, kind_of, span

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
_NO_MARK = tl.constexpr(layout.NO_MARK)
_PLACES = tl.constexpr(layout.PLACES)
_ROW = tl.constexpr(1 << layout.PLACES)
_PLACE_BITS = tl.constexpr(layout.PLACE_BITS)
_ROUNDED = tl.constexpr(layout.ROUNDED)
_ROUNDING = tl.constexpr(layout.ROUNDING)

# What ``_certify`` answers: that a value is bad, that the tolerance is proved, or 1.
_BAD = 3
_PROVED = 2

ROWS = 1024  # in a block
TOGETHER = 1024  # of the sample
SHARED = 1024  # stretches of a block of _share
AT_ONCE = 8192  # stretches before these that it adds up at a time
HEAVY = layout.SAMPLE // layout.MANY  # marks with copies, at most
COPIES_AT_ONCE = 4096
GATHERED = triton.cdiv(2 * layout.COPIES, COPIES_AT_ONCE)  # parts of a mark's copies, at most
BLOCK = 512  # cells
WARPS = 8  # for them, so that a thread has two: more would need too many registers
BLOCKS = triton.cdiv(layout.CELLS, BLOCK)
ALL_BLOCKS = triton.next_power_of_2(BLOCKS)
SUMS = 8
_I32, _I64, _F64 = torch.int32, torch.int64, torch.float64


def _pieces(
    *wanted: tuple[torch.dtype, int],
) -> tuple[int, tuple[tuple[int, torch.dtype], ...]]:
    """Return how many int64 it takes to hold all that is wanted, and where each piece begins."""
    at, pieces = 0, []
    for dtype, number in wanted:
        pieces.append((at, dtype))
        at += triton.cdiv(number * dtype.itemsize, 16) * 16
    return at // 8, tuple(pieces)


# What begins at 0: the sums of cells and their copies, those of the certificate, the list of marks
# with copies, of each stretch the mark and how often the sample has it.
_EMPTY = _pieces(
    (_I64, _TABLE.value + 2 * layout.COPIES),
    (_F64, SUMS * BLOCKS),
    (_I32, HEAVY),
    (_I32, layout.STRETCHES),
    (_I32, 2 * layout.STRETCHES),
)
# The sample, the plan, what is used of it and whether it proves the tolerance; of each cell its
# stretch, middle and P and D; what ``_carry`` takes of the blocks.
_WORK = _pieces(
    (_I32, layout.SAMPLE),
    (_I64, layout.STRETCHES),
    (_I32, layout.STRETCHES),
    (_I32, 1),
    (_I32, 1),
    (_I32, layout.CELLS),
    (_F64, layout.CELLS),
    (_I64, layout.CELLS),
    (_F64, 8 * BLOCKS),
)


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
def _tallied(sample, mark, lane, inside):
    """Return where rows are counted: 2 for each stretch, the second for those at its mark."""
    bits = tl.load(sample + lane, mask=inside, other=0)
    at = bits >> _STRETCH
    code = 2 * at + (bits + 1 == tl.load(mark + at)).to(tl.int32)
    return tl.where(inside, code, -1)


@triton.jit
def _later(a, b):
    return tl.maximum(a, b)


@triton.jit
def _tally(sample, mark, number, TOGETHER: tl.constexpr):
    """Count the rows of each stretch that are not at its mark, and those that are.

    They are sorted: the last of a run adds for all, so that they do not wait for each other.
    """
    lane = tl.arange(0, TOGETHER)
    sample += tl.program_id(0) * TOGETHER
    code = _tallied(sample, mark, lane, lane < TOGETHER)
    new = code != _tallied(sample, mark, lane - 1, lane > 0)
    last = code != _tallied(sample, mark, lane + 1, lane + 1 < TOGETHER)
    begin = tl.associative_scan(tl.where(new, lane, 0), 0, _later)
    tl.atomic_add(number + code, lane - begin + 1, mask=last, sem="relaxed")


@triton.jit
def _wanted(number, mark, at):
    """Return what stretches ask for: halvings, doublings of copies, the mark, and all in one.

    The last are cells, copies and whether there are such, to be added up.
    """
    inside = at < _STRETCHES
    others = tl.load(number + 2 * at, mask=inside, other=0)
    alike = tl.load(number + 2 * at + 1, mask=inside, other=0)
    marked = tl.load(mark + at, mask=inside, other=0)
    halvings = tl.where(others > 0, _log2(tl.maximum(others, 1)) + _FINER, 0)
    halvings = tl.minimum(halvings, _STRETCH)
    many = alike >= _MANY
    doublings = tl.maximum(_log2(tl.maximum(alike, 1)) - _SPARED, 0)
    size = tl.where(inside, (1 << halvings) + tl.where(marked > 0, 2, 0), 0)
    held = tl.where(many, 1 << doublings, 0)
    added = size.to(tl.int64) + (held.to(tl.int64) << 24) + (many.to(tl.int64) << 44)
    return halvings, tl.where(many, doublings, -1), marked, added


@triton.jit
def _share(number, mark, stretch, copies, heavy, used, SHARED: tl.constexpr, AT_ONCE: tl.constexpr):
    """Write what ``_cells_layout.Plan`` says of each stretch, and a list of those with copies."""
    begin = tl.program_id(0) * SHARED
    before = tl.zeros((AT_ONCE,), tl.int64)
    for start in range(0, begin, AT_ONCE):
        at = start + tl.arange(0, AT_ONCE)
        _, _, _, added = _wanted(number, mark, at)
        before += tl.where(at < begin, added, 0)
    at = begin + tl.arange(0, SHARED)
    halvings, doublings, marked, added = _wanted(number, mark, at)
    upto = tl.sum(before, 0) + tl.cumsum(added, 0)
    first = ((upto - added) & 0xFFFFFF).to(tl.int32)
    place = (((upto - added) >> 24) & 0xFFFFF).to(tl.int32)
    position = ((upto - added) >> 44).to(tl.int32)
    inside = at < _STRETCHES
    packed = first * 16 + _STRETCH - halvings
    marked = tl.where(marked > 0, marked - 1, _NO_MARK)
    tl.store(stretch + at, packed.to(tl.int64) + (marked.to(tl.int64) << 32), mask=inside)
    many = doublings >= 0
    tl.store(copies + at, tl.where(many, place * 16 + doublings, -1), mask=inside)
    tl.store(heavy + position, at + 1, mask=many)
    if begin + SHARED >= _STRETCHES:
        tl.store(used, (tl.max(upto, 0) & 0xFFFFFF).to(tl.int32))


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
def _gather(stretch, copies, heavy, table, AT_ONCE: tl.constexpr):
    """Add a part of the copies of a mark to its cell."""
    at = tl.load(heavy + tl.program_id(0)) - 1
    if at >= 0:
        _, _, marked = _unpacked(stretch, at)
        cell, _, _ = _cell_of(marked, stretch)
        copy = tl.load(copies + at)
        place = tl.program_id(1) * AT_ONCE + tl.arange(0, AT_ONCE)
        some = place < (2 << (copy & 15))
        amount = tl.load(table + _TABLE + 2 * (copy >> 4) + place, mask=some, other=0)
        total0 = tl.sum(tl.where(place & 1 == 0, amount, 0), 0)
        total1 = tl.sum(tl.where(place & 1 == 1, amount, 0), 0)
        tl.atomic_add(table + _entry(cell, 0), total0, mask=total0 > 0, sem="relaxed")
        tl.atomic_add(table + _entry(cell, 1), total1, mask=total1 > 0, sem="relaxed")


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
def _residuals(cell, inside, at, stretch, table, m, k):
    """Return of each cell x, r, the rows of each label, C, C₁/h, Σ|c| at most, and rounding."""
    x, r, begin, unit, step = _places(cell, at, stretch)
    packed0 = tl.load(table + _entry(cell, 0), mask=inside, other=0)
    packed1 = tl.load(table + _entry(cell, 1), mask=inside, other=0)
    n0 = (packed0 >> _PLACES).to(tl.float64)
    n1 = (packed1 >> _PLACES).to(tl.float64)
    places0 = (packed0 & (_ROW - 1)).to(tl.float64)
    places1 = (packed1 & (_ROW - 1)).to(tl.float64)
    off = tl.where(r > 0, unit * (step - 1) * 0.5, 0.0)
    o0 = tl.where(r > 0, unit * step * places0 + n0 * (begin + off - x), 0.0)
    o1 = tl.where(r > 0, unit * step * places1 + n1 * (begin + off - x), 0.0)
    c = m * (n1 * (1 - x) - o1 - n0 * x - o0)
    size = m * (n1 * (1 - x) - o1 + n0 * x + o0 + (n0 + n1) * off)
    first = m * ((1 - x) * o1 - x * o0) * k
    return x, r, n0, n1, c, first, size, off


@triton.jit
def _second(r, rows, k):
    return tl.where(rows > 0, r * k * (r * k) * 0.5 * tl.exp(r * k), 0.0)


@triton.jit(do_not_specialize=["k_bits"])
def _summarise(
    stretch, table, used, owner, place, blocks, n, k_bits,
    BLOCK: tl.constexpr, BLOCKS: tl.constexpr,
):  # fmt: skip
    """Write each cell's stretch and middle; each block's ends, sums and part of the error."""
    block = tl.program_id(0)
    last = tl.load(used)
    if block * BLOCK >= last:
        return
    cell = block * BLOCK + tl.arange(0, BLOCK)
    inside = cell < last
    at = tl.zeros((BLOCK,), tl.int32)
    end = tl.full((BLOCK,), _STRETCHES, tl.int32)
    for _ in tl.static_range(_SEARCHES):
        middle = (at + end) >> 1
        below = (tl.load(stretch + middle).to(tl.int32) >> 4) <= cell
        at = tl.where(below, middle, at)
        end = tl.where(below, end, middle)
    m, k = 1.0 / tl.cast(n, tl.float64), _double(k_bits)
    x, r, n0, n1, c, first, size, off = _residuals(cell, inside, at, stretch, table, m, k)
    tl.store(owner + cell, at, mask=inside)
    tl.store(place + cell, x, mask=inside)
    low, high = tl.min(tl.where(inside, x, 2.0), 0), tl.max(tl.where(inside, x, -1.0), 0)
    x = tl.minimum(x, high)  # outside
    rows = n0 + n1
    error = size * _second(r, rows, k) + m * rows * (off * (1 + k) + r * r * k)
    blocks += block
    tl.store(blocks, low)
    tl.store(blocks + BLOCKS, high)
    tl.store(blocks + 2 * BLOCKS, tl.sum((c + first) * tl.exp((x - high) * k), 0))
    tl.store(blocks + 3 * BLOCKS, tl.sum((c - first) * tl.exp((low - x) * k), 0))
    tl.store(blocks + 4 * BLOCKS, tl.sum(tl.where(inside, error, 0.0), 0))


@triton.jit
def _compose(d1, s1, d2, s2):
    return d1 * d2, d2 * s1 + s2


@triton.jit(do_not_specialize=["k_bits"])
def _carry(
    blocks, used, k_bits, BLOCK: tl.constexpr, BLOCKS: tl.constexpr, ALL_BLOCKS: tl.constexpr
):
    """Replace the sums of each block by what comes to it from below, to its low end, and above."""
    k = _double(k_bits)
    number = tl.cdiv(tl.load(used), BLOCK)
    place = tl.arange(0, ALL_BLOCKS)
    up = tl.program_id(0) == 0
    # Downwards all is the same from the other end.
    at = tl.where(up, place, number - 1 - place)
    known = place < number
    lows = tl.load(blocks + at, mask=known, other=0.0)
    highs = tl.load(blocks + BLOCKS + at, mask=known, other=0.0)
    sums = blocks + tl.where(up, 2, 3) * BLOCKS + at
    s = tl.load(sums, mask=known, other=0.0)
    earlier = known & (place > 0)
    far = tl.load(blocks + tl.where(up, BLOCKS + at - 1, at + 1), mask=earlier, other=0.0)
    gap = tl.where(up, lows - far, far - highs)
    gap = tl.where(earlier, tl.exp(-gap * k), 1.0)
    d = tl.where(known, gap * tl.exp((lows - highs) * k), 1.0)
    _, upto = tl.associative_scan((d, s), 0, _compose)
    tl.store(blocks + tl.where(up, 5, 6) * BLOCKS + at, upto, mask=known)
    tl.debug_barrier()
    before = tl.load(blocks + tl.where(up, 5 * BLOCKS + at - 1, 6 * BLOCKS + at + 1), mask=earlier)
    tl.store(sums, tl.where(earlier, before * gap, 0.0), mask=known)
    if up:
        error = tl.load(blocks + 4 * BLOCKS + at, mask=known, other=0.0)
        tl.store(blocks + 7 * BLOCKS, _ROUNDED + tl.sum(error, 0))


@triton.jit(do_not_specialize=["k_bits"])
def _solve(
    stretch, table, used, owner, place, blocks, n, k_bits, sums, pairs,
    UNBIASED: tl.constexpr, BLOCK: tl.constexpr, BLOCKS: tl.constexpr,
):  # fmt: skip
    """Write P and D of each cell, and this block's part of ``_kernel_cells.Sums``."""
    block = tl.program_id(0)
    last = tl.load(used)
    if block * BLOCK >= last:
        return
    cell = block * BLOCK + tl.arange(0, BLOCK)
    inside = cell < last
    m, k = 1.0 / tl.cast(n, tl.float64), _double(k_bits)
    own = m if UNBIASED else m * 0.0
    total = tl.load(blocks + 7 * BLOCKS)
    low, high = tl.load(blocks + block), tl.load(blocks + BLOCKS + block)
    from_below = tl.load(blocks + 2 * BLOCKS + block)
    from_above = tl.load(blocks + 3 * BLOCKS + block)

    at = tl.load(owner + cell, mask=inside, other=0)
    x, r, n0, n1, c, first, size, off = _residuals(cell, inside, at, stretch, table, m, k)
    # Outside, and beyond the ends of the block, nothing is added: how it decays does not matter.
    more, less = inside & (cell > block * BLOCK), cell + 1 < tl.minimum((block + 1) * BLOCK, last)
    before = tl.load(place + cell - 1, mask=more, other=0.0)
    after = tl.load(place + cell + 1, mask=less, other=0.0)
    x = tl.minimum(tl.maximum(x, low), high)
    decay = tl.where(more, tl.exp((before - x) * k), 1.0)
    _, below = tl.associative_scan((decay, c + first), 0, _compose)
    below += from_below * tl.exp((low - x) * k) - (c + first)
    decay = tl.where(less, tl.exp((x - after) * k), 1.0)
    _, above = tl.associative_scan((decay, c - first), 0, _compose, reverse=True)
    above += from_above * tl.exp((x - high) * k) - (c - first)
    P, D = below + c + above, (above - below) * k
    # One store for both, as ``_write`` has one load.
    low_half = P.to(tl.float32).to(tl.int32, bitcast=True).to(tl.int64) & 0xFFFFFFFF
    high_half = D.to(tl.float32).to(tl.int32, bitcast=True).to(tl.int64) << 32
    tl.store(pairs + cell, low_half | high_half, mask=inside)

    rows, steep, high_P = n0 + n1, tl.abs(D), tl.abs(P)
    second = _second(r, rows, k)
    slope = total * k + r * k * k * (tl.abs(P - c) + total) + second * k
    slope0 = slope + tl.where(r > 0, tl.maximum(size - m * (x - r), 0.0) * k, 0.0)
    slope1 = slope + tl.where(r > 0, tl.maximum(size - m * (1 - x - r), 0.0) * k, 0.0)
    potential = total + r * (steep + total * k) + second + 2 * size * r * k + m * rows * off
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
def _add(a1, b1, c1, d1, e1, f1, g1, a2, b2, c2, d2, e2, f2, g2):
    return a1 + a2, b1 + b2, c1 + c2, d1 + d2, e1 + e2, f1 + f2, g1 + g2


@triton.jit
def _parts(sums, which: tl.constexpr, BLOCKS: tl.constexpr, ALL_BLOCKS: tl.constexpr):
    at = tl.arange(0, ALL_BLOCKS)
    return tl.load(sums + which * BLOCKS + at, mask=at < BLOCKS, other=0.0)


@triton.jit
def _in_proportion(off, size):
    """Return an error in proportion to what the exact number is at least; inf: unknown."""
    known = (size > off) & (size < float("inf"))  # no comparison with NaN holds
    return tl.where(known, off / tl.where(known, size - off, 1.0), float("inf"))


@triton.jit(do_not_specialize=["tol_bits"])
def _certify(
    sums, n, tol_bits, value, proved, answer,
    UNBIASED: tl.constexpr, BLOCKS: tl.constexpr, ALL_BLOCKS: tl.constexpr,
):  # fmt: skip
    """Write kCE², and whether it and the gradient are within the tolerance.

    That is what ``_kernel_cells.Sums`` says. The answer goes to the host: 3 if a value is bad, 2 if
    the tolerance is proved, 1 if not.
    """
    parts = (
        _parts(sums, 1, BLOCKS, ALL_BLOCKS), _parts(sums, 2, BLOCKS, ALL_BLOCKS),
        _parts(sums, 3, BLOCKS, ALL_BLOCKS), _parts(sums, 4, BLOCKS, ALL_BLOCKS),
        _parts(sums, 5, BLOCKS, ALL_BLOCKS), _parts(sums, 6, BLOCKS, ALL_BLOCKS),
        _parts(sums, 7, BLOCKS, ALL_BLOCKS),
    )  # fmt: skip
    # All at once, as each reduction would wait for the one before.
    found, value_error, square, middle, slopes, potentials, rounding = tl.reduce(parts, 0, _add)
    error = tl.sqrt(slopes) + tl.sqrt(potentials) + _ROUNDING * tl.sqrt(rounding)
    norm = tl.sqrt(square) - tl.sqrt(middle)
    tol = _double(tol_bits)
    within = _in_proportion(error, norm) <= tol
    within = within & (_in_proportion(value_error, tl.abs(found)) <= tol)
    rows = tl.cast(n, tl.float64)
    scale = rows / (rows - 1.0) if UNBIASED else rows * 0.0 + 1.0
    tl.store(value, (scale * found).to(tl.float32))
    tl.store(proved, within.to(tl.int32))
    tl.store(answer, tl.where(tl.load(sums) > 0.0, 3, 1 + within.to(tl.int32)))


@triton.jit
def _write(
    prob, label, stretch, pairs, proved, gradient, n, UNBIASED: tl.constexpr, ROWS: tl.constexpr
):
    if tl.load(proved) == 0:
        return
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


def squared(
    prob: Tensor,
    label: Tensor,
    bandwidth: float,
    tol: float,
    *,
    unbiased: bool,
    with_gradient: bool,
) -> tuple[Tensor, Tensor] | None:
    """Return kCE² of one problem, and the gradient where it is wanted; None if not within tol."""
    n, device = prob.numel(), prob.get_device()
    tol = max(tol, sys.float_info.min)  # so that its bits are those of a large number
    k_bits, tol_bits = struct.unpack("2q", struct.pack("2d", 1 / bandwidth, tol))
    p, y = span(prob), span(outcomes(label))
    with torch.cuda.device(device):
        launch = Launches(*kind_of(n, p, y), unbiased)
        cleared = torch.zeros(_EMPTY[0], dtype=_I64, device=prob.device)
        others = cleared.new_empty(_WORK[0])
        table, sums, heavy, mark, number = _spans(cleared, _EMPTY)
        sample, stretch, copies, used, proved, owner, place, pairs, blocks = _spans(others, _WORK)

        groups, bits = (layout.SAMPLE // TOGETHER,), Span(p.address, _I32)
        drawn = bits, sample, mark, n, TOGETHER, layout.SAMPLE
        launch(_sample, groups, *drawn, num_warps=8)
        launch(_tally, groups, sample, mark, number, TOGETHER)
        plan = stretch, copies, heavy
        shared = number, mark, *plan, used, SHARED, AT_ONCE
        launch(_share, (triton.cdiv(layout.STRETCHES, SHARED),), *shared, num_warps=32)
        rows = (triton.cdiv(n, ROWS),)
        launch(_count, rows, p, y, stretch, copies, table, sums, n, ROWS)
        gathered = *plan, table, COPIES_AT_ONCE
        launch(_gather, (HEAVY, GATHERED), *gathered, num_warps=8)
        known = stretch, table, used, owner, place, blocks, n, k_bits
        launch(_summarise, (BLOCKS,), *known, BLOCK, BLOCKS, num_warps=WARPS)
        carried = blocks, used, k_bits, BLOCK, BLOCKS, ALL_BLOCKS
        launch(_carry, (2,), *carried, num_warps=8)
        options = sums, pairs, unbiased, BLOCK, BLOCKS
        launch(_solve, (BLOCKS,), *known, *options, num_warps=WARPS)
        answer, value = Answer(), prob.new_empty(prob.shape[:-1])
        asked = sums, n, tol_bits, span(value), proved, answer.number
        launch(_certify, (1,), *asked, unbiased, BLOCKS, ALL_BLOCKS, num_warps=8)
        gradient = prob.new_empty(0)
        if with_gradient:
            gradient = torch.empty_like(prob)
            written = stretch, pairs, proved, span(gradient), n, unbiased, ROWS
            launch(_write, rows, p, y, *written)
        found = answer.poll()  # for the proof alone: the GPU works on
    if found == _BAD:
        _checks.fail_binary(prob.view(1, n), label.view(1, n), None)
    return (value, gradient) if found == _PROVED else None


def _spans(memory: Tensor, pieces: tuple[int, tuple[tuple[int, torch.dtype], ...]]) -> list[Span]:
    """Return the pieces of a tensor's memory."""
    start = memory.data_ptr()
    return [Span(start + at, dtype) for at, dtype in pieces[1]]
