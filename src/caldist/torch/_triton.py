r"""Sums of the Laplace kernel on a GPU: kCE² and its gradient, in a few kernels around one sort.

Notation: v the sorted predictions of a problem, m the masses, c = m (y - v) the residuals, h the
bandwidth.

1. ``_pack`` checks every value and makes integer keys that sort like the predictions and carry the
   label in their last bit.
2. ``torch.sort`` sorts keys, with the order.
3. ``_summarise`` reduces each block of sorted rows, in both directions, to what it adds to a sum
   carried across it.
4. ``_collect`` and ``_carry`` run over the blocks of a problem.
5. ``_finish`` scans inside the blocks, from the carried sums, and writes each row's gradient to
   where the row came from; of many rows ``_place`` does that, band by band.
6. ``_values`` adds up the value.

A scan carries two numbers. Going up, L is the sum of c_j exp((v_j - v_i)/h) over the rows up to and
including i, and A is that sum over strictly smaller predictions only, the same for all rows of a
run of equal predictions: L counts for the value, A for the slope, which is 0 between equal ones. A
row, or a block of rows, is a map

    L -> d L + s,    A -> d L + a  if a run begins in it, else A,

with d the decay over it; no row decays after the last beginning of a run, so d is the same in both.
Such maps compose (``_compose``), all numbers stay below 1 in size, and so any bandwidth is safe.
Going down is the same from the other end, with R and B. Everything is in float64, which this
hardware does fast enough to wait for memory all the same.

For derivatives of the gradient the last three kernels also take predictions that are sorted, and
any numbers c, as they are, and write L + R - c and its derivatives for each row. FLOAT is then
None: there are no keys to read predictions from, and the numbers stand where the order would.
"""

# Types are Triton's own here, which no checker knows.
# mypy: ignore-errors
# ruff: noqa: ANN001, ANN202, N803, N806

from __future__ import annotations

import struct
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from caldist.torch import _checks
from caldist.torch._triton_launch import Launches, kind_of, span

BLOCK = 1024
WARPS = 8
CHUNK = 1024  # blocks that _carry takes at a time
PARTS = 4096  # blocks whose values are added up at a time
# Rows whose gradient fits into the cache. Outside it a row takes three times as long to be written
# at a random place, so that many rows are written in several passes, each to a band of rows.
BAND = 10**7
PLACED = 1024
_LOOKS = 500  # at a number that the GPU writes, each less than a microsecond


@triton.jit
def _pack(prob, label, key, bad, size, BLOCK: tl.constexpr):
    """Write (bits of the prediction, label) as one integer; say if a value is bad."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    p = tl.load(prob + at, mask=inside, other=0.0)
    y = tl.load(label + at, mask=inside, other=0)
    good = (p >= 0.0) & (p <= 1.0) & ((y == 0) | (y == 1))
    if tl.min(good.to(tl.int32), axis=0) == 0:
        tl.store(bad, 1)
    bits = p.to(key.dtype.element_ty, bitcast=True)
    # The shift drops the sign bit, which only -0.0 has.
    tl.store(key + at, (bits << 1) | (y != 0).to(key.dtype.element_ty), mask=inside)


@triton.jit
def _double(bits):
    """Return a float64 argument, which Triton takes as float32 if it is not hidden in its bits."""
    return tl.cast(bits, tl.float64, bitcast=True)


@triton.jit
def _prediction(key, at, inside, FLOAT: tl.constexpr):
    """Read sorted predictions, from keys or as they are."""
    k = tl.load(key + at, mask=inside, other=0)
    if FLOAT is not None:
        k = (k >> 1).to(FLOAT, bitcast=True).to(tl.float64)
    return k


@triton.jit
def _residual(
    key, order, weight, total, n, at, inside, FLOAT: tl.constexpr, WEIGHTED: tl.constexpr
):
    """Read predictions, masses and residuals of sorted rows; without keys there are no masses."""
    k = tl.load(key + at, mask=inside, other=0)
    if FLOAT is None:
        v, m = k, k
        c = tl.load(order + at, mask=inside, other=0.0)
    else:
        v = (k >> 1).to(FLOAT, bitcast=True).to(tl.float64)
        if WEIGHTED:
            row = tl.load(order + at, mask=inside, other=0)
            m = tl.load(weight + row, mask=inside, other=0.0).to(tl.float64) / tl.load(total)
        else:
            m = inside.to(tl.float64) / tl.cast(n, tl.float64)
        c = m * ((k & 1).to(tl.float64) - v)
    return v, m, c


@triton.jit
def _compose(d1, s1, a1, new1, d2, s2, a2, new2):
    """Return the map of two neighbouring pieces, the first one first."""
    a = tl.where(new2 != 0, d2 * s1 + a2, a1)
    return d1 * d2, d2 * s1 + s2, a, new1 | new2


@triton.jit(do_not_specialize=["blocks", "inverse_bits"])
def _summarise(
    key, order, weight, total, work, n, blocks, inverse_bits,
    FLOAT: tl.constexpr, WEIGHTED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Write d, s, a of each block, and whether a run begins in it, for both directions.

    Inside a block these are plain sums of terms that decay towards the block's end.
    """
    block, problem = tl.program_id(0), tl.program_id(1)
    key += problem.to(tl.int64) * n
    order += problem.to(tl.int64) * n
    work += problem.to(tl.int64) * 9 * blocks + block
    inverse_h = _double(inverse_bits)
    start = block * BLOCK
    stop = tl.minimum(start + BLOCK, n)
    at = start + tl.arange(0, BLOCK)
    inside = at < n
    v, _, c = _residual(key, order, weight, total, n, at, inside, FLOAT, WEIGHTED)
    low = _prediction(key, start, start < n, FLOAT)
    high = _prediction(key, stop - 1, start < n, FLOAT)
    before = _prediction(key, start - 1, start > 0, FLOAT)
    after = _prediction(key, stop, stop < n, FLOAT)

    up = c * tl.exp((v - high) * inverse_h)
    tl.store(work, tl.where(start > 0, tl.exp((before - high) * inverse_h), 0.0))
    tl.store(work + blocks, tl.sum(up, axis=0))
    tl.store(work + 2 * blocks, tl.sum(tl.where(v < high, up, 0.0), axis=0))
    tl.store(work + 3 * blocks, ((start == 0) | (before < high)).to(tl.float64))

    down = tl.where(inside, c * tl.exp((low - v) * inverse_h), 0.0)
    tl.store(work + 4 * blocks, tl.where(stop < n, tl.exp((low - after) * inverse_h), 0.0))
    tl.store(work + 5 * blocks, tl.sum(down, axis=0))
    tl.store(work + 6 * blocks, tl.sum(tl.where(v > low, down, 0.0), axis=0))
    tl.store(work + 7 * blocks, ((stop == n) | (low < after)).to(tl.float64))


@triton.jit
def _read_chunk(work, blocks, CHUNK: tl.constexpr):
    """Return the maps of a chunk of blocks, in the direction of this program, composed."""
    direction, problem, chunk = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    work += (problem.to(tl.int64) * 9 + 4 * direction) * blocks
    place = chunk * CHUNK + tl.arange(0, CHUNK)
    inside = place < blocks
    at = tl.where(direction == 0, place, blocks - 1 - place)
    # Past the end nothing decays and nothing is added.
    d = tl.load(work + at, mask=inside, other=1.0)
    s = tl.load(work + blocks + at, mask=inside, other=0.0)
    a = tl.load(work + 2 * blocks + at, mask=inside, other=0.0)
    new = tl.load(work + 3 * blocks + at, mask=inside, other=0.0).to(tl.int32)
    d, s, a, new = tl.associative_scan((d, s, a, new), 0, _compose)
    return work + blocks + at, inside, d, s, a, new


@triton.jit
def _last(values, WIDTH: tl.constexpr):
    return tl.sum(tl.where(tl.arange(0, WIDTH) == WIDTH - 1, values, 0), axis=0)


@triton.jit(do_not_specialize=["blocks", "number"])
def _collect(work, chunks, blocks, number, CHUNK: tl.constexpr):
    """Write the map of each chunk of blocks."""
    _, _, d, s, a, new = _read_chunk(work, blocks, CHUNK)
    direction, problem, chunk = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    chunks += (problem * 2 + direction) * 4 * number + chunk
    tl.store(chunks, _last(d, CHUNK))
    tl.store(chunks + number, _last(s, CHUNK))
    tl.store(chunks + 2 * number, _last(a, CHUNK))
    tl.store(chunks + 3 * number, _last(new, CHUNK).to(tl.float64))


@triton.jit(do_not_specialize=["blocks", "number"])
def _carry(work, chunks, blocks, number, CHUNK: tl.constexpr, CHUNKS: tl.constexpr):
    """Replace s and a of each block by L and A as they stand after it, in both directions."""
    direction, problem, chunk = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    chunks += (problem * 2 + direction) * 4 * number
    at = tl.arange(0, CHUNKS)
    done = at < chunk
    d = tl.load(chunks + at, mask=done, other=1.0)
    s = tl.load(chunks + number + at, mask=done, other=0.0)
    a = tl.load(chunks + 2 * number + at, mask=done, other=0.0)
    new = tl.load(chunks + 3 * number + at, mask=done, other=0.0).to(tl.int32)
    _, s, a, _ = tl.associative_scan((d, s, a, new), 0, _compose)
    carried, strict = _last(s, CHUNKS), _last(a, CHUNKS)  # a is 0 as long as no run began
    place, inside, d, s, a, new = _read_chunk(work, blocks, CHUNK)
    tl.store(place, d * carried + s, mask=inside)
    tl.store(place + blocks, tl.where(new != 0, d * carried + a, strict), mask=inside)


@triton.jit(do_not_specialize=["blocks", "inverse_bits"])
def _finish(
    key, order, weight, total, work, gradient, rows, n, blocks, inverse_bits,
    FLOAT: tl.constexpr, WEIGHTED: tl.constexpr, UNBIASED: tl.constexpr, GRADIENT: tl.constexpr,
    BANDED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Write each block's part of the value, and the gradient in the order the rows came in.

    Banded, the gradient stays in the order of the sort, beside the rows as 32-bit numbers. Without
    keys, in place of the gradient, the sum around each row and its first two derivatives.
    """
    block, problem = tl.program_id(0), tl.program_id(1)
    key += problem.to(tl.int64) * n
    order += problem.to(tl.int64) * n
    work += problem.to(tl.int64) * 9 * blocks + block
    inverse_h = _double(inverse_bits)
    at = block * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    v, m, c = _residual(key, order, weight, total, n, at, inside, FLOAT, WEIGHTED)
    # Rows past the end add nothing; they begin no run and do not decay.
    before = _prediction(key, at - 1, inside & (at > 0), FLOAT)
    d = tl.where(inside, tl.where(at > 0, tl.exp((before - v) * inverse_h), 0.0), 1.0)
    new = (inside & ((at == 0) | (before < v))).to(tl.int32)
    zero = tl.zeros_like(c)
    up_d, up_s, up_a, up_new = tl.associative_scan((d, c, zero, new), 0, _compose)
    up_sum = tl.load(work + blocks - 1, mask=block > 0, other=0.0)
    up_strict = tl.load(work + 2 * blocks - 1, mask=block > 0, other=0.0)
    L = up_d * up_sum + up_s
    # Both L and R hold the row itself: once too often, or twice where its own pair is left out.
    if UNBIASED:
        own, scale = 2.0 * c, tl.cast(n, tl.float64) / (tl.cast(n, tl.float64) - 1.0)
    else:
        own, scale = c, 1.0
    tl.store(work + 8 * blocks, scale * tl.sum(c * (2.0 * L - own), axis=0))
    if GRADIENT:
        A = tl.where(up_new != 0, up_d * up_sum + up_a, up_strict)
        after = _prediction(key, at + 1, at + 1 < n, FLOAT)
        d = tl.where(inside, tl.where(at + 1 < n, tl.exp((v - after) * inverse_h), 0.0), 1.0)
        new = (inside & ((at + 1 == n) | (v < after))).to(tl.int32)
        down_d, down_s, down_a, down_new = tl.associative_scan(
            (d, c, zero, new), 0, _compose, reverse=True
        )
        more = block + 1 < blocks
        down_sum = tl.load(work + 5 * blocks + 1, mask=more, other=0.0)
        down_strict = tl.load(work + 6 * blocks + 1, mask=more, other=0.0)
        R = down_d * down_sum + down_s
        B = tl.where(down_new != 0, down_d * down_sum + down_a, down_strict)
        if FLOAT is None:
            gradient += problem.to(tl.int64) * 3 * n
            tl.store(gradient + at, L + R - c, mask=inside)
            gradient += n
            tl.store(gradient + at, (B - A) * inverse_h, mask=inside)
            gradient += n
            tl.store(gradient + at, (B + A) * inverse_h * inverse_h, mask=inside)
        else:
            g = 2.0 * scale * (c * ((B - A) * inverse_h) - m * (L + R - own))
            # Writing in random order is what takes longest. It helps to leave the cache to it.
            row = tl.load(order + at, mask=inside, other=0, eviction_policy="evict_first")
            gradient += problem.to(tl.int64) * n
            g = g.to(gradient.dtype.element_ty)
            if BANDED:
                tl.store(gradient + at, g, mask=inside)
                tl.store(rows + at, row.to(tl.int32), mask=inside)
            else:
                tl.store(gradient + row, g, mask=inside, eviction_policy="evict_last")


@triton.jit(do_not_specialize=["blocks"])
def _values(work, value, blocks, PARTS: tl.constexpr):
    """Add up the parts of each problem's value."""
    problem = tl.program_id(0)
    work += (problem.to(tl.int64) * 9 + 8) * blocks
    total = tl.zeros((PARTS,), tl.float64)
    for start in range(0, blocks, PARTS):
        at = start + tl.arange(0, PARTS)
        total += tl.load(work + at, mask=at < blocks, other=0.0)
    tl.store(value + problem, tl.sum(total, 0).to(value.dtype.element_ty))


@triton.jit(do_not_specialize=["low", "high"])
def _place(rows, sorted_gradient, gradient, n, low, high, BLOCK: tl.constexpr):
    """Write the gradient of the rows of a band, which the cache holds, to where they came from."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row = tl.load(rows + at, mask=at < n, other=-1, eviction_policy="evict_first")
    wanted = (row >= low) & (row < high)
    g = tl.load(sorted_gradient + at, mask=wanted, eviction_policy="evict_first")
    tl.store(gradient + row, g, mask=wanted, eviction_policy="evict_last")


@triton.jit
def _multiply(gradient, factor, result, n, ROWS: tl.constexpr):
    at = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    problem = tl.program_id(1)
    gradient += problem.to(tl.int64) * n
    result += problem.to(tl.int64) * n
    g = tl.load(gradient + at, mask=at < n, other=0.0)
    tl.store(result + at, g * tl.load(factor + problem), mask=at < n)


def fits(prob: Tensor) -> bool:
    """Return whether 32-bit places and the grid of blocks suffice."""
    n = prob.shape[-1]
    return prob.is_cuda and prob.numel() // n < 2**16 and n < 2**31 - BLOCK


class Answer:
    """A number that a kernel writes to the host's memory; 0 if it writes nothing."""

    def __init__(self) -> None:
        self.number = torch.zeros(1, dtype=torch.int32, pin_memory=True)

    def asked(self) -> None:
        """Say that the kernel has been launched."""
        self._event = torch.cuda.Event()
        self._event.record()

    def wait(self) -> int:
        """Wait for that kernel, and for nothing behind it."""
        self._event.synchronize()
        return int(self.number)

    def poll(self) -> int:
        """Wait for a kernel that writes another number than 0, without having been asked.

        The host looks for it a few times, which is faster than to be told, if it comes soon.
        """
        for _ in range(_LOOKS):
            if found := int(self.number):
                return found
        torch.cuda.current_stream().synchronize()
        return int(self.number)


def outcomes(label: Tensor) -> Tensor:
    """Return labels of a type that Triton knows."""
    return label.view(torch.uint8) if label.dtype == torch.bool else label


def packed(prob: Tensor, label: Tensor) -> tuple[Tensor, Answer]:
    """Return keys to be sorted, and whether a value is bad."""
    key = torch.empty_like(prob, dtype=torch.int32 if prob.dtype == torch.float32 else torch.int64)
    bad, size, p, y = Answer(), prob.numel(), span(prob), span(outcomes(label))
    launch = Launches(*kind_of(size, p, y), size < 2**31)
    grid = (triton.cdiv(size, BLOCK),)
    launch(_pack, grid, p, y, span(key), bad.number, size, BLOCK)
    bad.asked()
    return key, bad


def laplace_squared(
    prob: Tensor,
    label: Tensor,
    weight: Tensor | None,
    bandwidth: float,
    *,
    unbiased: bool,
    with_gradient: bool,
) -> tuple[Tensor, Tensor]:
    """Return kCE² of each problem, and the gradient where it is wanted."""
    prob, label = prob.contiguous(), label.contiguous()
    single = prob.dtype == torch.float32
    with torch.cuda.device(prob.device):
        key, bad = packed(prob, label)
        total = held = key  # not read without weights
        if weight is not None:
            total, held = weight.sum(dtype=torch.float64), weight.contiguous()

        key, order = key.sort(dim=-1)
        gradient = torch.empty_like(prob) if with_gradient else prob.new_empty(0)
        work = _scan(
            (key, order, held, total), bandwidth, gradient,
            FLOAT=tl.float32 if single else tl.float64, WEIGHTED=weight is not None,
            UNBIASED=unbiased, GRADIENT=with_gradient,
        )  # fmt: skip
        problems, _, blocks = work.shape
        value = prob.new_empty(problems)
        launch, added = Launches(prob.dtype), (span(work), span(value), blocks, PARTS)
        launch(_values, (problems,), *added, num_warps=WARPS)
        failed = bad.wait()  # for the inputs only: the GPU works on
    if failed or (weight is not None and not bool(_checks.good_weights(weight))):
        _checks.fail_binary(prob, label, weight)
    return value, gradient


def multiplied(gradient: Tensor, factor: Tensor) -> Tensor:
    """Return the gradient of each problem times its factor, in less time than torch takes."""
    n, result, factor = gradient.shape[-1], torch.empty_like(gradient), factor.contiguous()
    given = span(gradient), span(factor)
    with torch.cuda.device(gradient.get_device()):
        launch = Launches(*kind_of(n, *given))
        grid = (triton.cdiv(n, PLACED), gradient.numel() // n)
        launch(_multiply, grid, *given, span(result), n, PLACED)
    return result


def laplace_sums(v: Tensor, c: Tensor, h: float, highest: int) -> list[Tensor]:
    """Return the sums of ``c`` around each row and their derivatives, up to the highest wanted."""
    v, c = v.contiguous(), c.contiguous()
    sums = v.new_empty((v.shape[0], 3, v.shape[1]))
    with torch.cuda.device(v.device):
        _scan((v, c, v, v), h, sums, FLOAT=None, WEIGHTED=False, UNBIASED=False, GRADIENT=True)
    return list(sums.unbind(1)[: highest + 1])


def _scan(
    rows: tuple[Tensor, ...],
    bandwidth: float,
    out: Tensor,
    *,
    FLOAT: Any,
    WEIGHTED: bool,
    UNBIASED: bool,
    GRADIENT: bool,
) -> Tensor:
    """Run the last kernels; return what they keep of each block, its part of the value last."""
    problems, n = rows[0].shape
    blocks = triton.cdiv(n, BLOCK)
    (inverse_bits,) = struct.unpack("q", struct.pack("d", 1 / bandwidth))
    # For each block: d, s, a, whether a run begins, upwards and downwards; and the value.
    kept = torch.empty((problems, 9, blocks), dtype=torch.float64, device=out.device)
    banded = problems == 1 and FLOAT is tl.float32 and GRADIENT and n > 2 * BAND
    kind = FLOAT, WEIGHTED, UNBIASED, GRADIENT, banded
    given, work = [span(part) for part in rows], span(kept)
    number = triton.cdiv(blocks, CHUNK)
    together = max(16, triton.next_power_of_2(number))
    launch = Launches(*kind_of(n, *given), out.dtype, *kind, together)
    size, grid = (n, blocks, inverse_bits), (blocks, problems)
    # Fewer threads do more each, which pays where there are many blocks.
    warps = WARPS // 2 if n > 2 * BAND else WARPS
    launch(_summarise, grid, *given, work, *size, FLOAT, WEIGHTED, BLOCK, num_warps=warps)
    chunks = kept.new_empty(8 * problems * number)
    carried, grid_of_chunks = (work, span(chunks), blocks, number), (2, problems, number)
    if number > 1:
        launch(_collect, grid_of_chunks, *carried, CHUNK, num_warps=WARPS)
    launch(_carry, grid_of_chunks, *carried, CHUNK, together, num_warps=WARPS)
    gradient = torch.empty_like(out) if banded else out
    row = torch.empty_like(out, dtype=torch.int32) if banded else out
    placed = span(row), span(gradient), span(out), n
    launch(_finish, grid, *given, work, *placed[1::-1], *size, *kind, BLOCK, num_warps=warps)
    if banded:
        grid, band = (triton.cdiv(n, PLACED),), triton.cdiv(n, triton.cdiv(n, BAND))
        for low in range(0, n, band):
            launch(_place, grid, *placed, low, low + band, PLACED)
    return kept
