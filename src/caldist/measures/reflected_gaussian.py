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
   exp(-σ²(πk)²/2): f, its derivative and its primitive S come from fast Fourier transforms, on a
   grid of spacing σ/32.
4. ``kernels/crossings.py`` integrates \|f\| over that grid. Steps 1 to 3 have proven errors; that
   of the interpolation is an estimate, about 1e-13 of the result, and against direct sums of
   Gaussians no more than that was seen.

Rows in any order can be laid into cells of [0, 1] before σ is known (:class:`MomentNorm`):
no gap is shortened then, and with LEAST_CELLS cells per width replacing the masses by the moments
changes f by at most (1/12)^10 / √10! < 1e-14 of the mass.
"""

from __future__ import annotations

import math

import numpy as np

from caldist._util.types import Vector
from caldist.kernels.loader import crossings

REACH = 8.0  # widths beyond which a Gaussian has less than 1e-14 of its mass
ORDER = 10  # moments per cell
_FACTORIALS = np.array([[math.factorial(m)] for m in range(ORDER)], dtype=np.float64)
LEAST_CELLS = 6.0  # cells per width where they were laid before it was known
_CELLS = 8  # cells per width, at the least width of the range
_FINER = 4  # points of evaluation per cell
_TILE = 1 << 14  # cells that are transformed together, which bounds the memory in use
_VANISHED = 41.0  # exp(-41) < 2^-53: frequencies that are damped by more are left out


class Kernel:
    """K of some places, a row each, at some points, for widths of at least ``least``."""

    def __init__(self, place: Vector, at: Vector, least: float) -> None:
        self._frequency = _frequencies(least)[1:]
        self._place = np.cos(np.outer(place, self._frequency))
        self._at = np.cos(np.outer(self._frequency, at))

    def __call__(self, width: float) -> Vector:
        """Return K of one width."""
        kept = _frequencies(width).size - 1
        waves = self._place[:, :kept] * (2 * _damping(self._frequency[:kept] * width))
        return np.asarray(1 + waves @ self._at[:kept])


def density(place: Vector, mass: Vector, width: float, at: Vector) -> Vector:
    """Return f at some points: O(n), then a small matrix product."""
    cells = max(32, math.ceil(_CELLS / width))
    frequency = _frequencies(width, cells)
    moment = moments(place * cells, mass, cells)
    coefficient = _cosine_coefficients(moment, frequency / cells) * cells
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
            cells = window = _fast_size(cells)
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
                moment = moments(line[near] - left, mass[near], window)
                self._tiles.append(_Tile(moment, core, low / self._unit))
            done = end

    def __call__(self, width: float) -> float:
        """Return the integral at one width."""
        if not self._tiles:
            return self._constant
        return self._constant + sum(tile.integral(width / self._unit) for tile in self._tiles)


class MomentNorm:
    """The same of masses that were laid into cells of [0, 1], for σ of at least LEAST_CELLS cells.

    The rows of ``moment`` are the sums of mass x^m / m!, x the distance from the centre of the
    cell, in cells.
    """

    def __init__(self, moment: Vector) -> None:
        self._cells = moment.shape[1]
        self._tile = _Tile(moment, (0, self._cells), LEAST_CELLS)

    def __call__(self, width: float) -> float:
        """Return the integral at one width."""
        return self._tile.integral(width * self._cells)


class _Tile:
    """A stretch of the line, in units of its cells, with what reaches it from outside.

    Reflecting at ends where the line goes on does no harm: what comes back stays outside of the
    core, the part that is integrated over.
    """

    def __init__(self, moment: Vector, core: tuple[int, int], least: float) -> None:
        self._cells = moment.shape[1]
        self._core = core
        self._frequency = _frequencies(least / self._cells, self._cells) / self._cells
        self._coefficient = _cosine_coefficients(moment, self._frequency)

    def integral(self, width: float) -> float:
        """Return the integral of |f| over the core."""
        kept = np.searchsorted(self._frequency, math.sqrt(2 * _VANISHED) / width) + 1
        frequency = self._frequency[:kept]
        damped = self._coefficient[:kept] * _damping(frequency * width)
        points = self._cells * _FINER
        if self._core == (0, self._cells):  # as many points as the width needs
            points = min(points, _fast_size(math.ceil(_CELLS * _FINER * self._cells / width)))
        # f, then its primitive and its slope in units of the grid.
        step = self._cells / points
        waves = np.zeros((3, damped.size), dtype=np.complex128)
        waves[0].real = damped
        waves[0, 0] *= 2
        np.divide(damped[1:], -step * frequency[1:], out=waves[1, 1:].imag)
        np.multiply(damped[1:], step * frequency[1:], out=waves[2, 1:].imag)
        waves *= points * step
        value, primitive, slope = np.fft.irfft(waves, 2 * points)[:, : points + 1]
        primitive += damped[0] * step * np.arange(points + 1)
        core = slice(round(self._core[0] / step), round(self._core[1] / step) + 1)
        return float(crossings.absolute_integral(primitive[core], value[core], slope[core]))


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


def moments(line: Vector, mass: Vector, cells: int) -> Vector:
    """Return the sums of mass x^m / m! in each cell, x the distance from its centre."""
    moment = np.zeros((cells, ORDER))
    crossings.moments(line, mass, moment)
    return np.asarray(moment.T / _FACTORIALS)


def _cosine_coefficients(moment: Vector, frequency: Vector) -> Vector:
    """Return the cosine coefficients of masses, by the moments of each cell.

    Those of a cell at x contribute the sum of the moments times the derivatives of cos(qx): the
    real part of (-iq)^m exp(-iqx).
    """
    cells = moment.shape[1]
    waves = np.fft.rfft(moment, 2 * cells)[:, : frequency.size]
    factor = -1j * frequency
    total = waves[-1]
    for wave in waves[-2::-1]:
        total = total * factor + wave
    result = (total * np.exp(factor / 2)).real * (2 / cells)
    result[0] /= 2
    return np.asarray(result)


def _fast_size(least: int) -> int:
    """Return a number of points, at least so many, that fast transforms like."""
    return min(odd << max(0, -(-least // odd) - 1).bit_length() for odd in (1, 3, 5, 9, 15))
