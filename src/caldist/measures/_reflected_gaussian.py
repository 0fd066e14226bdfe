r"""Point masses on [0, 1] smoothed by the reflected Gaussian: the result, and its L1 norm.

The smoothed masses are :math:`f(t) = \sum_i c_i K_\sigma(v_i, t)`, K the density at t of
v + σZ, Z normal, folded into [0, 1] by reflection at 0 and 1. Each K has total mass 1, at v = 0
and v = 1 too. :func:`density` computes f at some points, by steps 2 and 3 of what follows.
:class:`SmoothedNorm` computes :math:`\int_0^1 |f|` for all σ of a range at once:

1. Gaps longer than ``2 REACH`` σ are shortened to that: what reaches across is less than 1e-14 of
   the mass. A stretch between such gaps whose masses have one sign needs no integral.
2. Cells of width σ/8 keep the first ten moments of their masses. With the bound
   :math:`\|G^{(m)}\|_1 \le \sigma^{-m} \sqrt{m!}` on the derivatives of the Gaussian, replacing
   the masses by the moments changes f by at most (1/16)^10 / √10! < 1e-15 of the mass, in L1.
3. In the cosine basis of the line, reflected smoothing is multiplication by
   exp(-σ²(πk)²/2): f, its derivative and its primitive S come from fast cosine and sine transforms,
   on a grid of spacing σ/32.
4. Between neighbouring zeros of f the integral of \|f\| is \|ΔS\|. A zero is found by cubic
   interpolation and S there by quintic. S is stationary at a zero, so its place need not be exact.
   Steps 1 to 3 have proven errors; that of the interpolation is an estimate, about 1e-13 of the
   result, and against direct sums of Gaussians no more than that was seen.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np

from caldist._util.types import Vector

REACH = 8.0  # widths beyond which a Gaussian has less than 1e-14 of its mass
_ORDER = 10  # moments per cell
_CELLS = 8  # cells per width, at the least width of the range
_FINER = 4  # points of evaluation per cell
_TILE = 1 << 14  # cells that are transformed together, which bounds the memory in use
_VANISHED = 41.0  # exp(-41) < 2^-53: frequencies that are damped by more are left out
_BISECTIONS = 30


def kernel(place: Vector, width: float, at: Vector) -> Vector:
    """Return K of each place, a row, at some points."""
    frequency = _frequencies(width)[1:]
    waves = np.cos(np.outer(place, frequency)) * (2 * _damping(frequency * width))
    return np.asarray(1 + waves @ np.cos(np.outer(frequency, at)))


def density(place: Vector, mass: Vector, width: float, at: Vector) -> Vector:
    """Return f at some points: O(n), then a small matrix product."""
    cells = max(32, math.ceil(_CELLS / width))
    frequency = _frequencies(width, cells)
    coefficient = _cosine_coefficients(place * cells, mass, cells, frequency / cells) * cells
    coefficient *= _damping(frequency * width)
    return np.asarray(np.cos(np.outer(at, frequency)) @ coefficient)


def _damping(frequency: Vector) -> Vector:
    """Return what smoothing by the width 1 leaves of the waves of these frequencies."""
    return np.exp(-0.5 * frequency**2)


def _frequencies(width: float, cells: float = math.inf) -> Vector:
    """Return πk for all k that the width leaves, and that so many cells can tell apart."""
    top = math.ceil(math.sqrt(2 * _VANISHED) / (math.pi * width))
    return np.arange(min(top, cells - 1) + 1, dtype=np.float64) * math.pi


class SmoothedNorm:
    """The integral of |f| as a function of the width σ, for low <= σ <= high.

    ``place`` is increasing in [0, 1], ``mass`` of any sign.
    """

    def __init__(self, place: Vector, mass: Vector, low: float, high: float) -> None:
        self._constant, line, mass, length = _shorten(place, mass, REACH * high)
        self._tiles: list[_Tile] = []
        if line.size == 0:
            return
        cells = math.ceil(max(32.0, length * _CELLS / low))
        halo = math.ceil(REACH * high * cells / length)
        window = max(_TILE, 1 << (4 * halo).bit_length())
        if cells <= window:
            from scipy.fft import next_fast_len  # importing scipy is slow

            cells = window = next_fast_len(cells, real=True)
        self._unit = length / cells
        line /= self._unit
        done = 0
        while done < cells:
            left = max(0, min(done - halo, cells - window))
            right = left + window
            end = cells if right == cells else right - halo
            start, stop = np.searchsorted(line, (left, right)).tolist()
            stop = line.size if right == cells else stop  # a place at the very end
            if start < stop:
                near, core = slice(start, stop), (done - left, end - left)
                tile = _Tile(line[near] - left, mass[near], window, core, low / self._unit)
                self._tiles.append(tile)
            done = end

    def __call__(self, width: float) -> float:
        """Return the integral at one width."""
        if not self._tiles:
            return self._constant
        return self._constant + sum(tile.integral(width / self._unit) for tile in self._tiles)


class _Tile:
    """A stretch of the line, in units of its cells, with what reaches it from outside.

    Reflecting at ends where the line goes on does no harm: what comes back stays outside of the
    core, the part that is integrated over.
    """

    def __init__(
        self, line: Vector, mass: Vector, cells: int, core: tuple[int, int], least: float
    ) -> None:
        self._cells = cells
        self._core = slice(_FINER * core[0], _FINER * core[1] + 1)
        self._frequency = _frequencies(least / cells, cells) / cells
        self._coefficient = _cosine_coefficients(line, mass, cells, self._frequency)

    def integral(self, width: float) -> float:
        """Return the integral of |f| over the core."""
        from scipy.fft import dct, dst  # importing scipy is slow

        frequency = self._frequency
        damped = self._coefficient * _damping(frequency * width)
        points = self._cells * _FINER
        sines = np.zeros((2, points - 1))
        np.divide(damped[1:], frequency[1:], out=sines[0, : damped.size - 1])
        np.multiply(damped[1:], -frequency[1:], out=sines[1, : damped.size - 1])
        cosines = np.zeros(points + 1)
        cosines[: damped.size] = damped
        cosines[0] *= 2
        value = dct(cosines, type=1, overwrite_x=True) / 2
        primitive, slope = np.zeros((2, points + 1))
        primitive[1:-1], slope[1:-1] = dst(sines, type=1, overwrite_x=True) / 2
        primitive += damped[0] / _FINER * np.arange(points + 1)
        core, step = self._core, 1 / _FINER
        return _absolute_integral(primitive[core], step * value[core], step**2 * slope[core])


def _shorten(place: Vector, mass: Vector, reach: float) -> tuple[float, Vector, Vector, float]:
    """Take out of the line what needs no integral.

    Returns the integral over the stretches of one sign, and the places and masses on the line of
    the others, with its length.
    """
    gap = np.diff(place)
    start = np.flatnonzero(np.concatenate(([True], gap > 2 * reach)))
    size = np.diff(start, append=place.size)
    mixed = (np.minimum.reduceat(mass, start) < 0) & (np.maximum.reduceat(mass, start) > 0)
    constant = float(np.abs(np.add.reduceat(mass, start)[~mixed]).sum())
    if not mixed.any():
        return constant, np.empty(0), np.empty(0), 0.0
    first, last = place[start], place[start + size - 1]
    before, after = np.full((2, start.size), reach)
    before[0], after[-1] = min(reach, first[0]), min(reach, 1 - last[-1])
    length = np.where(mixed, before + (last - first) + after, 0.0)
    offset = np.cumsum(length) - length + before
    keep = np.repeat(mixed, size)
    # Differences to the first place of a stretch are exact where stretches are short.
    line = (place - np.repeat(first, size)) + np.repeat(offset, size)
    return constant, line[keep], mass[keep], float(length.sum())


def _cosine_coefficients(line: Vector, mass: Vector, cells: int, frequency: Vector) -> Vector:
    """Return the cosine coefficients of the masses, by the moments of each cell."""
    from scipy.fft import dct, dst  # importing scipy is slow

    cell = np.minimum(line.astype(np.intp), cells - 1)
    offset = line - (cell + 0.5)
    moment = np.empty((_ORDER, cells))
    weighted = mass.copy()
    for m in range(_ORDER):
        moment[m] = np.bincount(cell, weighted, cells)
        weighted *= offset / (m + 1)
    # The derivatives of cos(qx) are -q sin, -q² cos, q³ sin, q⁴ cos, ...
    even = dct(moment[::2], type=2, axis=1)[:, : frequency.size]
    odd = np.zeros_like(even)
    odd[:, 1:] = dst(moment[1::2], type=2, axis=1)[:, : frequency.size - 1]
    square = -(frequency**2)
    result = np.zeros(frequency.size)
    for cosine, sine in zip(even[::-1], odd[::-1], strict=True):
        result = result * square + (cosine - frequency * sine)
    result /= cells
    result[0] /= 2
    return result


def _absolute_integral(primitive: Vector, value: Vector, slope: Vector) -> float:
    """Integrate |f| over the cells of a grid, from S, f and f' at its points.

    The cells have width 1: f and f' are given in these units.
    """
    change = np.diff(primitive)
    left, right = value[:-1], value[1:]
    crossing = (left > 0) != (right > 0)
    # f may also touch 0 twice inside a cell if it turns towards 0 from both ends.
    dip = (left * slope[:-1] < 0) & (right * slope[1:] > 0)
    at = np.flatnonzero(crossing | dip)
    total = float(np.abs(change).sum())
    if at.size == 0:
        return total
    part = _split_cells(change[at], left[at], right[at], slope[at], slope[at + 1])
    return total + float((part - np.abs(change[at])).sum())


def _split_cells(change: Vector, f0: Vector, f1: Vector, g0: Vector, g1: Vector) -> Vector:
    """Integrate |f| over single cells in which f may change its sign.

    Between the turning points of its cubic interpolant f is monotone, so each of the three parts
    has at most one zero.
    """
    a2 = 3 * (f1 - f0) - 2 * g0 - g1
    a3 = 2 * (f0 - f1) + g0 + g1

    def cubic(x: Vector) -> Vector:
        return f0 + x * (g0 + x * (a2 + x * a3))

    root = np.sqrt(np.maximum(a2**2 - 3 * g0 * a3, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        far = -(a2 + np.copysign(root, a2))
        turns = np.stack([far / (3 * a3), g0 / far])
    inside = (turns > 0) & (turns < 1)  # not where the division has failed
    turns = np.sort(np.where(inside, turns, 0.0), axis=0)
    ends = np.stack([np.zeros_like(f0), turns[0], turns[1], np.ones_like(f0)])
    points = [ends[0]]
    for low, high in pairwise(ends):
        points += [_zero(cubic, low, high), high]
    b3 = 10 * change - 6 * f0 - 4 * f1 - 1.5 * g0 + 0.5 * g1
    b4 = -15 * change + 8 * f0 + 7 * f1 + 1.5 * g0 - g1
    b5 = 6 * change - 3 * f0 - 3 * f1 - 0.5 * g0 + 0.5 * g1
    x = np.stack(points)
    primitive = x * (f0 + x * (0.5 * g0 + x * (b3 + x * (b4 + x * b5))))
    return np.asarray(np.abs(np.diff(primitive, axis=0)).sum(axis=0))


def _zero(function: Callable[[Vector], Vector], low: Vector, high: Vector) -> Vector:
    """Return the zeros of monotone functions in [low, high]; ``low`` where the sign is the same."""
    positive = function(low) > 0
    high = np.where(positive == (function(high) > 0), low, high)
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        same = (function(middle) > 0) == positive
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    return low
