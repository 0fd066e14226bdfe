"""Sub-groups side by side: labels drawn for all at once, and smCE of each, without a loop.

A test is exact for every statistic, so where rows are many that of a group is chosen to be cheap:
smCE of its residuals on at most 32 cells of neighbouring predictions. Cells are made without
looking at labels, and labels are still drawn from the predictions of the rows. On a cell a
Lipschitz function hardly changes: of the statistic's noise, cells leave out about a hundredth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from caldist._util.cached import cached_property
from caldist._util.types import Integers, Vector
from caldist.inference.null_distribution import label_dependence, null_values
from caldist.inference.random_labels import RandomLabels
from caldist.inference.resampling import Resampler
from caldist.inference.sample import Draw, Units, one_after_the_other
from caldist.kernels.loader import smooth

_MANY = 20_000  # rows of all groups from which cells and random bytes are worth it
_CELLS = 32  # of a group
_ROWS_PER_PLACE = 32  # up to which labels are drawn row by row


def smooth_ce_of_groups(
    groups: Sequence[Units], units: Sequence[Units], resampler: Resampler
) -> list[Vector]:
    """Return tables of smCE: a column for each group, a row for the sample and each replicate.

    Labels are drawn from the predictions; clusters get signs. Where these alone say too little in
    one of the groups, there is a second table, of labels drawn for clusters in all groups.
    ``units`` are the groups with clusters numbered for all of them, across which these may reach.
    """
    side = SimulatedGroups.of(units)
    draws: list[Draw] = [side.draw]
    if side.units.cluster is not None and any(group.draws_labels for group in groups):
        dependence = [label_dependence(group) for group in groups]
        in_cells = np.repeat(dependence, np.diff(side.start))
        draws.append(side.units.drawing_in(side.cell_of, in_cells))
    return [null_values(side.sum_over_cells, side.statistics, resampler, draw) for draw in draws]


@dataclass(frozen=True, eq=False)
class SimulatedGroups:
    """The supports of all groups side by side, and cells on them.

    Each group keeps its own total, since its statistic does not ask how large it is.

    Attributes
    ----------
    units
        The units of all groups, on the supports one after the other.
    cell
        The first place of each cell, and the end of the support.
    start
        The first cell of each group, and the number of cells.
    alike
        Whether rows are independent, and of equal weight within each group.
    """

    units: Units
    cell: Integers
    start: Integers
    alike: bool

    @classmethod
    def of(cls, units: Sequence[Units]) -> SimulatedGroups:
        """Put groups side by side, and cut each into cells of about equally many predictions.

        With few rows every prediction is a cell.
        """
        sizes = np.array([part.prediction.size for part in units])
        first = np.concatenate(([0], np.cumsum(sizes)))
        together = one_after_the_other(units)
        heaviest = [part.heaviest for part in units if part.heaviest is not None]
        if heaviest:  # which says how labels are drawn
            together = replace(together, heaviest=max(heaviest))
        cells = np.minimum(sizes, _CELLS) if together.n_rows >= _MANY else sizes
        start = np.concatenate(([0], np.cumsum(cells)))
        group = np.repeat(np.arange(sizes.size), cells)
        number = np.arange(start[-1]) - start[group]
        cell = first[group] + number * sizes[group] // cells[group]
        alike = all(part.are_alike for part in units)
        return cls(together, np.append(cell, first[-1]), start, alike)

    def in_cells(self, values: Vector) -> Vector:
        """Return the sum over each cell of one value for each place of the support."""
        if self.cell.size == values.size + 1:
            return values
        return np.add.reduceat(values, self.cell[:-1])

    @cached_property
    def cell_of(self) -> Integers:
        """The number of the cell of each place of the support."""
        return np.repeat(np.arange(self.cell.size - 1), np.diff(self.cell))

    @cached_property
    def sum_over_cells(self) -> Units:
        """The units with the means of cells for a support; labels are not drawn from these."""
        return self.units.sum_over_cells(self.cell_of)

    def draw(self, rng: np.random.Generator) -> Vector:
        """Return the residual masses in the cells, of labels drawn anew."""
        units = self.units
        if units.cluster is not None:
            return self.in_cells(units.flip(rng))
        if self._labels is None:
            return self.in_cells(units.draw(rng))
        labels, start, expected, share = self._labels
        return (labels.ones(rng, start) - expected) * share

    @cached_property
    def _labels(self) -> tuple[RandomLabels, Integers, Vector, Vector] | None:
        """Labels of many rows, the first row of each cell, the sum of predictions, and a share."""
        units = self.units
        if not self.alike or not _MANY <= units.n_rows <= _ROWS_PER_PLACE * units.prediction.size:
            return None
        rows = units.at_predictions(units.count.astype(np.float64))
        labels = RandomLabels(units.prediction, rows.astype(np.int64))
        share = np.empty(units.prediction.size)
        share[units.place] = units.share
        expected = self.in_cells(rows * units.prediction)
        return labels, labels.start[self.cell], expected, share[self.cell[:-1]]

    def statistics(self, masses: Vector) -> Vector:
        """Return smCE of each group, from residual masses in the cells."""
        out = np.empty(self.start.size - 1)
        smooth.smooth_ce_of_each(self.sum_over_cells.prediction, masses, self.start, out)
        return out
