r"""Experts that bet against calibration: fixed curves, whose wealth is a function of sums.

An expert says that the log-odds of a prediction in cell k are off by δ(k). Levels are constant,
slopes linear in the log-odds, waves cosines of u(v) = (2/π) asin √v, and the tree is a mixture over
all ways to cut the 64 leaves of [0, 1] into dyadic pieces, each with a shift of its own. δ is a
function of the cell that was fixed before any data: of its reference point, never of the mean of
the rows in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from caldist._util.cached import cached_property
from caldist._util.types import Integers, Vector
from caldist.data.grid import Grid
from caldist.kernels.loader import experts as kernel

LEAVES = 64
SHIFTS = np.array([sign * size for size in (0.1, 0.2, 0.4, 0.8, 1.6) for sign in (1, -1)])
LEVELS = 8  # the first of them are also levels of all leaves together
LEVEL_SHARES = np.repeat([0.11, 0.155, 0.155, 0.08], 2)  # a large one shows itself anyway
EXPONENTS = np.array([0.5, 0.7, 0.85, 1 / 0.85, 1 / 0.7, 2.0])
OFFSETS = np.array([-0.4, -0.2, 0.0, 0.2, 0.4])
OFFSET_SHARES = np.array([0.1, 0.2, 0.4, 0.2, 0.1])
FREQUENCIES = np.array([2, 3, 4, 5])
SIZES = 0.1 * 2.0 ** np.arange(4)
LARGEST = 6.0  # no expert moves log-odds further

FAMILIES = ("level", "slope", "wave", "local")
_SHARES = (0.26, 0.30, 0.13, 0.31)
_SLOPES, _WAVES = EXPONENTS.size * OFFSETS.size, 2 * FREQUENCIES.size * SIZES.size
N_SUMS = LEAVES * SHIFTS.size + _SLOPES + _WAVES

_IDLE, _ROOT_IDLE, _STOP = 0.6, 0.3, 0.35
_MOST_BITS = 14  # of the reference cells; finer grids share them

_LOG_PRIOR = np.log(
    np.concatenate(
        (
            _SHARES[0] * LEVEL_SHARES,
            np.tile(_SHARES[1] * OFFSET_SHARES / EXPONENTS.size, EXPONENTS.size),
            np.full(_WAVES, _SHARES[2] / _WAVES),
        )
    )
)
_UNMOVED = 0.05  # the prior weight of "no shift" in the curve of the experts


def scale_of(v: Vector) -> Vector:
    """Return u(v) = (2/π) asin √v, on which the noise of frequencies is even."""
    return 2 / np.pi * np.arcsin(np.sqrt(v))


@dataclass(frozen=True, eq=False)
class Table:
    """The experts at the reference points of a grid.

    Attributes
    ----------
    bits
        The grid has 2^bits cells, and one more for v = 1.
    point
        The reference point of each cell.
    """

    bits: int
    point: Vector

    @cached_property
    def leaf(self) -> Integers:
        """The leaf of each cell."""
        return np.minimum((LEAVES * scale_of(self.point)).astype(np.int64), LEAVES - 1)

    @cached_property
    def _bends(self) -> tuple[Vector, Vector]:
        """What slopes without offset and waves of size 1 add to the log-odds: a line for each."""
        logit = np.log(self.point) - np.log1p(-self.point)
        wave = np.cos(np.pi * FREQUENCIES[:, None] * scale_of(self.point))
        return (EXPONENTS[:, None] - 1) * logit, wave

    @cached_property
    def lines(self) -> Vector:
        """What the kernel reads of a cell, cell by cell: see there."""
        tilt, wave = self._bends
        logit = np.log(self.point) - np.log1p(-self.point)
        parts = (self.leaf[None], logit[None], wave, np.exp(tilt), np.exp(SIZES[0] * wave))
        return np.ravel(np.concatenate(parts).T)

    @cached_property
    def curves(self) -> Vector:
        """The frequency of label 1 that each expert, and nobody, claims: a line for each."""
        logit = np.log(self.point) - np.log1p(-self.point)
        tilt = self._bends[0][:, None] + OFFSETS[:, None]
        wave = self._bends[1][:, None, None] * SIZES[:, None, None]
        shift = np.concatenate(
            (
                np.repeat(SHIFTS[:LEVELS, None], logit.size, axis=1),
                np.clip(tilt, -LARGEST, LARGEST).reshape(_SLOPES, -1),
                np.concatenate((wave, -wave), axis=2).reshape(_WAVES, -1),
                np.zeros((1, logit.size)),
            )
        )
        return np.asarray(1 / (1 + np.exp(-logit - shift)))


@cache
def table(bits: int) -> Table:
    """Return the experts for a grid; finer grids than 2^14 share the reference cells of that."""
    bits = min(bits, _MOST_BITS)
    point = (np.arange(2**bits + 1) + 0.5) * 2.0**-bits
    point[-1] = 1 - 2.0 ** -(bits + 2)
    return Table(bits, point)


def batch_sums(grid: Grid) -> Vector:
    """Return the logarithms of what each expert makes of the rows of a grid."""
    out = np.zeros(N_SUMS)
    experts = table(grid.bits)
    kernel.expert_sums(
        grid.cell >> (grid.bits - experts.bits),
        grid.centres(),
        np.asarray(grid.count0 + grid.count1, np.float64),
        np.asarray(grid.count1, np.float64),
        grid.resolution,
        experts.lines,
        FREQUENCIES.size,
        SHIFTS,
        EXPONENTS - 1,
        OFFSETS,
        SIZES,
        LARGEST,
        out,
    )
    return out


def window_values(total: Vector, windows: Vector) -> Vector:
    """Return the log values of the four families, for the window from each start until now.

    ``total`` and each line of ``windows``, the sums before it, begin with the sums of the experts.
    """
    out = np.empty((windows.shape[0], len(FAMILIES)))
    kernel.window_values(
        total,
        windows.ravel(),
        windows.shape[1],
        SHIFTS.size,
        LEAVES,
        LEVELS,
        _SLOPES,
        _LOG_PRIOR,
        np.log(_SHARES[3]),
        _IDLE,
        _ROOT_IDLE,
        _STOP,
        out.ravel(),
    )
    return out


def mean_curve(sums: Vector, bits: int) -> Vector:
    """Return the frequency of label 1 at each cell that the experts claim on average.

    Each level, slope and wave counts by its prior weight times its wealth from ``sums``.
    """
    levels = sums[: LEAVES * SHIFTS.size].reshape(LEAVES, -1)[:, :LEVELS].sum(axis=0)
    logs = np.concatenate((levels, sums[LEAVES * SHIFTS.size :])) + _LOG_PRIOR
    logs = np.append(logs, np.log(_UNMOVED))
    weight = np.exp(logs - logs.max())
    return np.asarray(np.einsum("i,ij->j", weight / weight.sum(), table(bits).curves))


def tree_curve(sums: Vector, bits: int) -> Vector:
    """Return the frequency of label 1 at each cell that the tree claims on average.

    Down the tree goes the probability that a node is cut further; what stops at a node is divided
    among its shifts, and none, by their wealth.
    """
    node = sums[: LEAVES * SHIFTS.size].reshape(LEAVES, -1)
    below = np.zeros(LEAVES)
    claims = []  # from the leaves to the root: how likely a node stops, and its shifts
    while True:
        count = node.shape[0]
        idle = _ROOT_IDLE if count == 1 else _IDLE
        none = np.full((count, 1), np.log(idle))
        terms = np.concatenate((node + np.log((1 - idle) / SHIFTS.size), none), axis=1)
        local = np.logaddexp.reduce(terms, axis=1)
        stay = local if count == LEAVES else np.log(_STOP) + local
        value = local if count == LEAVES else np.logaddexp(stay, np.log1p(-_STOP) + below)
        claims.append((np.exp(stay - value), np.exp(terms - local[:, None])))
        if count == 1:
            break
        below = value[0::2] + value[1::2]
        node = node[0::2] + node[1::2]
    here = np.ones(1)
    shares = np.zeros((LEAVES, SHIFTS.size + 1))
    for stops, shift in reversed(claims):
        width = LEAVES // stops.size
        shares += np.repeat((here * stops)[:, None] * shift, width, axis=0)
        here = np.repeat(here * (1 - stops), 2)
    point = table(bits).point
    logit = np.log(point) - np.log1p(-point)
    claimed = 1 / (1 + np.exp(-logit[:, None] - np.append(SHIFTS, 0.0)))
    return np.asarray((shares[table(bits).leaf] * claimed).sum(axis=1))
