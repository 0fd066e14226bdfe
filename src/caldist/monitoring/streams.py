r"""``Stream``: what is remembered of the rows of one group, all of it sums.

The sums up to now and those before each window give every window's own. A stream is a value: a
batch makes a new one, so that a batch that is refused changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from caldist._util.cached import cached_property
from caldist._util.types import Integers, Vector
from caldist.data.grid import Grid, empty
from caldist.data.joint import Joint
from caldist.monitoring import experts, mixtures, potentials, windows

POOLED_BITS = 12  # of the grid on which all rows are kept
RECENT_BITS = 10  # of that of recent predictions
_HALF_LIFE = 8  # batches after which a prediction counts half as recent

_BANK, _SHOCKS = mixtures.BANK_SHARES.size, mixtures.SHOCK_SHARES.size
# Where the sums lie.
EXPERTS = slice(0, experts.N_SUMS)
GAIN = slice(EXPERTS.stop, EXPERTS.stop + _BANK)
SQUARE = slice(GAIN.stop, GAIN.stop + _BANK)
ROWS, SPREAD = SQUARE.stop, SQUARE.stop + 1
SHOCK = slice(SPREAD + 1, SPREAD + 1 + _SHOCKS)
SHOCK_SQUARE = slice(SHOCK.stop, SHOCK.stop + _SHOCKS)
N_SUMS = SHOCK_SQUARE.stop


@dataclass(frozen=True, eq=False)
class Stream:
    """The sums of a group's rows.

    Attributes
    ----------
    batches
        How many there were, with and without rows.
    total
        The sums over all rows: of the experts, of the payoffs and of their squares for each member
        of the bank, the (weighted) number of rows, Σ(y − v)², and sums of whole batches.
    start, windows
        The batches from which windows begin, and the sums before each of them.
    grid, invalid
        All rows, on a grid, and what was left out of the tables that they came from.
    recent
        The rows of each cell of a coarse grid, old ones counted less.
    scale
        The size of the first batch with rows; 0 before.
    """

    batches: int
    total: Vector
    start: Integers
    windows: NDArray[np.float64]
    grid: Grid
    invalid: Mapping[str, int]
    recent: Vector
    scale: float = 0.0

    @classmethod
    def empty(cls, bits: int) -> Stream:
        """Return the stream of no batch."""
        return cls(
            batches=0,
            total=np.zeros(N_SUMS),
            start=np.zeros(0, np.int64),
            windows=np.zeros((0, N_SUMS)),
            grid=empty(min(bits, POOLED_BITS)),
            invalid={},
            recent=np.zeros(2 ** min(bits, RECENT_BITS) + 1),
        )

    def updated(self, grid: Grid, invalid: Mapping[str, int], *, by_batch: bool) -> Stream:
        """Return the stream with one more batch.

        With ``by_batch`` the mean payoff of a batch is one payoff: its rows may share anything.
        """
        before = self._before()
        start = np.append(self.start, self.batches)
        mask = windows.mask(start, self.batches + 1)
        lines = np.empty((np.count_nonzero(mask), N_SUMS))
        np.compress(mask[:-1], self.windows, axis=0, out=lines[:-1])
        lines[-1] = self.total  # the latest window always stays
        recent = self.recent * 2 ** (-1 / _HALF_LIFE)
        scale = self.scale
        total = self.total
        if grid.cell.size:
            total = total + self._sums(grid, before, by_batch=by_batch)
            coarse = grid.cell >> max(grid.bits - RECENT_BITS, 0)
            count = np.asarray(grid.count0 + grid.count1, np.float64)
            scale = scale or float(count.sum())
            recent = recent + np.bincount(coarse, count, minlength=recent.size)
        return Stream(
            batches=self.batches + 1,
            total=total,
            start=start[mask],
            windows=lines,
            grid=self.grid + grid,
            invalid=_added(self.invalid, invalid),
            recent=recent,
            scale=scale,
        )

    def _before(self) -> tuple[potentials.Potentials | None, potentials.Potentials | None]:
        """Return the potentials that the next batch is paid by."""
        past = None if self.fit is None else self.fit.potentials
        return past, self.smooth

    def _sums(
        self,
        grid: Grid,
        bank: tuple[potentials.Potentials | None, potentials.Potentials | None],
        *,
        by_batch: bool,
    ) -> Vector:
        """Return what the rows of a batch add to the sums.

        Payoffs are taken at the mean of each cell. They are 1-Lipschitz, so the rows' own sum is
        lower by at most the sum of their moves, and no payoff is larger by more than a cell.
        """
        count0, count1 = (np.asarray(part, np.float64) for part in (grid.count0, grid.count1))
        square0, square1 = (
            count if square is None else square
            for count, square in (
                (count0, grid.weight_square0),
                (count1, grid.weight_square1),
            )
        )
        v = grid.centres()
        rows = float((count0 + count1).sum())
        moved = rows * _moved(grid)
        change = np.zeros(N_SUMS)
        change[EXPERTS] = experts.batch_sums(grid)
        gain, square = change[GAIN], change[SQUARE]
        slack = np.zeros(_BANK)
        for k, pair in enumerate(bank):
            if pair is not None:
                r0, r1 = pair.at(v)
                gain[k] = (count0 * r0).sum() + (count1 * r1).sum()
                square[k] = (square0 * (np.abs(r0) + grid.width) ** 2).sum()
                square[k] += (square1 * (np.abs(r1) + grid.width) ** 2).sum()
                slack[k] = moved
        residual = count1 - (count0 + count1) * v
        gain[2:] = residual.sum(), -residual.sum()
        slack[2:] = rows * grid.resolution
        spread = (square0 * (v + grid.width) ** 2).sum()
        spread += (square1 * (1 - v + grid.width) ** 2).sum()
        square[2:] = spread
        change[SPREAD] = spread
        if by_batch:
            square[:] = ((np.abs(gain) + slack) / rows) ** 2
            gain[:] = (gain - slack) / rows
            change[ROWS] = 1.0
            sums = residual * self._shapes(grid)
            change[SHOCK] = sums.sum(axis=1)
            change[SHOCK_SQUARE] = change[SHOCK] ** 2
        else:
            gain[:] -= slack
            change[ROWS] = rows
        return change

    @staticmethod
    def _shapes(grid: Grid) -> Vector:
        """Return the functions 1, cos πu and cos 2πu, with which residuals of a batch are added."""
        table = experts.table(grid.bits)
        u = experts.scale_of(table.point[grid.cell >> (grid.bits - table.bits)])
        return np.cos(np.pi * np.arange(_SHOCKS)[:, None] * u)

    # -- what the sums say ---------------------------------------------------------------------

    @cached_property
    def _mass(self) -> float:
        return float(self.grid.count0.sum() + self.grid.count1.sum())

    @cached_property
    def joint(self) -> Joint:
        """All rows, on a grid."""
        return Joint._from_grid(self.grid, self.invalid)  # noqa: SLF001 -- sums of checked rows

    @cached_property
    def families(self) -> Vector:
        """The log values of the families of experts: a line for each window."""
        return experts.window_values(self.total, self.windows)

    @cached_property
    def window_experts(self) -> Vector:
        """The log value of all experts together in each window."""
        return np.asarray(np.logaddexp.reduce(self.families, axis=1))

    def calibrated_values(self, *, by_batch: bool) -> Vector:
        """Return the log e-values of perfect calibration in each window."""
        if not by_batch:
            return self.window_experts
        gain, square = (self.total[part] - self.windows[:, part] for part in (SHOCK, SHOCK_SQUARE))
        if self.scale == 0:
            return np.zeros(self.start.size)
        return mixtures.shock_values(gain, square, self.scale)

    def distance_values(self, distance: float) -> Vector:
        """Return the log e-values of "the distance is at most this" in each window."""
        gain, square = (self.total[part] - self.windows[:, part] for part in (GAIN, SQUARE))
        rows = self.total[ROWS] - self.windows[:, ROWS]
        return mixtures.bank_values(gain, square, rows, distance)

    @cached_property
    def _log_shares(self) -> Vector:
        """How much was bet on each window."""
        return windows.log_shares(self.start)

    def value_of(self, values: Vector) -> float:
        """Return the log value of all windows, each from its share, and of the cash."""
        held = self._log_shares + values
        return mixtures.log_sum(np.append(held, np.log(windows.cash(self.batches))))

    @cached_property
    def fit(self) -> potentials.Fit | None:
        """The best potentials for all rows, and bounds on their lower distance; None without rows.

        As close as a fifth of what chance leaves open, and nearly always much closer.
        """
        if self.grid.cell.size == 0:
            return None
        count0, count1 = (
            np.asarray(part, np.float64) for part in (self.grid.count0, self.grid.count1)
        )
        room = mixtures.boundary(float(self.total[SPREAD]), 0.05) / self._mass
        tol = min(max(room / 5, 1e-5), 1e-3)
        return potentials.fit(self.grid.centres(), count0, count1, tol)

    @cached_property
    def smooth(self) -> potentials.Potentials | None:
        """The best potentials if labels follow the experts' curve in the best window."""
        there = np.flatnonzero(self.recent)
        if there.size == 0:
            return None
        best = int(np.argmax(self._log_shares + self.window_experts))
        bits = int(self.recent.size - 1).bit_length() - 1
        curve = experts.mean_curve((self.total - self.windows[best])[EXPERTS], bits)[there]
        mass = self.recent[there]
        found = potentials.fit(experts.table(bits).point[there], mass * (1 - curve), mass * curve)
        return None if found is None else found.potentials

    def lower(self, level: float) -> float:
        """Return the lower end of the confidence sequence of the mean distance of all batches."""
        rows = float(self.total[ROWS])
        return mixtures.lower_end(self.total[GAIN], self.total[SQUARE], rows, level)

    def upper(self, level: float) -> float:
        """Return the upper end, which holds for independent rows of one law."""
        if self.fit is None:
            return 1.0
        room = mixtures.boundary(float(self.total[SPREAD]), level) / self._mass
        return min(1.0, self.fit.upper + _moved(self.grid) + room)

    def curve(self, window: int) -> tuple[Vector, Vector]:
        """Return predictions, and the frequency of label 1 that all experts claim in a window.

        Each family counts by its posterior share.
        """
        logs = self.families[window]
        share = np.exp(logs - np.logaddexp.reduce(logs))
        sums = (self.total - self.windows[window])[EXPERTS]
        bits = int(self.recent.size - 1).bit_length() - 1
        smooth, local = experts.mean_curve(sums, bits), experts.tree_curve(sums, bits)
        return experts.table(bits).point, (1 - share[3]) * smooth + share[3] * local

    def shares(self, window: int) -> tuple[int, ...]:
        """Return the posterior share of each family in a window, in hundredths."""
        logs = self.families[window]
        share = np.exp(logs - np.logaddexp.reduce(logs))
        return tuple(int(part) for part in np.rint(100 * share))


def _moved(grid: Grid) -> float:
    """Bound the mean of |v − v̄| over the rows, v̄ being the mean of each cell.

    Within a cell it lies below its chord, whose mean at a share c of the cell is 2c(1 − c) widths.
    """
    return grid.width / 2 + grid.resolution


def _added(first: Mapping[str, int], second: Mapping[str, int]) -> Mapping[str, int]:
    if not (first and second):
        return dict(first or second)
    return {name: first.get(name, 0) + second.get(name, 0) for name in {*first, *second}}
