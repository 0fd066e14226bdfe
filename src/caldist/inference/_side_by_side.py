"""Sub-groups side by side: labels drawn for all at once, and smCE of each, without a loop.

A test is exact for every statistic, so where rows are many that of a group is chosen to be cheap:
smCE of its residuals on at most 32 cells of neighbouring predictions. Cells are made without
looking at labels, and labels are still drawn from the predictions of the rows. On a cell a
Lipschitz function hardly changes: of the statistic's noise, cells leave out about a hundredth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caldist._kernels import replicates, smooth
from caldist._util.types import Integers, Vector
from caldist.data.rows import Rows
from caldist.data.units import Units
from caldist.inference._null import Draw, null_values
from caldist.inference._resampling import Resampler

_MANY = 20_000  # rows of all groups from which cells and random bytes are worth it
_CELLS = 32  # of a group
_LEVELS = 256  # of a random byte


def smooth_ce_of_groups(
    parts: Sequence[Rows], units: Sequence[Units], resampler: Resampler
) -> Vector:
    """Return smCE of each group in the sample, then in each replicate, a row each.

    Labels are drawn from the predictions; clusters, which may reach across groups, get signs.
    """
    side = SideBySide.of(units)
    plain = all(not part.is_summary and not part.weighted for part in parts)
    drawn: Draw
    if plain and side.units.cluster is None and side.units.n_rows >= _MANY:
        rows = np.concatenate([part.prediction[part.order] for part in parts])
        drawn = _Labels(rows, side).draw
    else:
        draw = side.units.draw if side.units.cluster is None else side.units.flip

        def drawn(rng: np.random.Generator) -> Vector:
            return side.in_cells(draw(rng))

    return null_values(side.on_cells, side.statistics, resampler, drawn)


@dataclass(frozen=True, eq=False)
class SideBySide:
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
    """

    units: Units
    cell: Integers
    start: Integers

    @classmethod
    def of(cls, units: Sequence[Units]) -> SideBySide:
        """Put groups side by side, and cut each into cells of about equally many predictions.

        With few rows every prediction is a cell.
        """
        sizes = np.array([part.prediction.size for part in units])
        first = np.concatenate(([0], np.cumsum(sizes)))
        names = ["prediction", "residual", "place", "label", "count", "share", "mass"]
        if units[0].cluster is not None:
            names.append("cluster")
        columns: dict[str, Any] = {
            name: np.concatenate([getattr(part, name) for part in units]) for name in names
        }
        columns["place"] += np.repeat(first[:-1], [part.place.size for part in units])
        n_clusters = max(part.n_clusters for part in units)  # those of one group may end earlier
        together = Units(**columns, n_clusters=n_clusters)
        cells = np.minimum(sizes, _CELLS) if together.n_rows >= _MANY else sizes
        start = np.concatenate(([0], np.cumsum(cells)))
        group = np.repeat(np.arange(sizes.size), cells)
        number = np.arange(start[-1]) - start[group]
        cell = first[group] + number * sizes[group] // cells[group]
        return cls(together, np.append(cell, first[-1]), start)

    def in_cells(self, values: Vector) -> Vector:
        """Return the sum over each cell of one value for each place of the support."""
        if self.cell.size == values.size + 1:
            return values
        return np.add.reduceat(values, self.cell[:-1])

    @cached_property
    def on_cells(self) -> Units:
        """The units with the means of cells for a support; labels are not drawn from these."""
        units = self.units
        mass = units.at_predictions(units.mass)
        of_cell = np.repeat(np.arange(self.cell.size - 1), np.diff(self.cell))
        middle = self.in_cells(mass * units.prediction) / self.in_cells(mass)
        low, high = units.prediction[self.cell[:-1]], units.prediction[self.cell[1:] - 1]
        return Units(
            prediction=np.clip(middle, low, high),
            residual=self.in_cells(units.residual),
            place=of_cell[units.place],
            label=units.label,
            count=units.count,
            share=units.share,
            mass=units.mass,
            cluster=units.cluster,
            n_clusters=units.n_clusters,
        )

    def statistics(self, masses: Vector) -> Vector:
        """Return smCE of each group, from residual masses in the cells."""
        out = np.empty(self.start.size - 1)
        smooth.smooth_ce_of_each(self.on_cells.prediction, masses, self.start, out)
        return out


class _Labels:
    """Labels of rows without weights, drawn with a random byte each.

    A byte below ⌊256 v⌋ is label 1, one above it label 0. It decides but for one row in 256, which
    gets a uniform number for the rest: a label is 1 with probability v to all digits.
    """

    def __init__(self, prediction: Vector, side: SideBySide) -> None:
        """Take all rows, by group and then by prediction."""
        whole = np.minimum(np.floor(_LEVELS * prediction), _LEVELS - 1)
        self._level = whole.astype(np.uint8)
        self._rest = _LEVELS * prediction - whole
        units = side.units
        rows = units.at_predictions(units.count.astype(np.float64))
        counts = side.in_cells(rows).astype(np.int64)
        self._start = np.concatenate(([0], np.cumsum(counts)))
        self._expected = np.add.reduceat(prediction, self._start[:-1])
        group = np.diff(side.start)
        self._share = 1 / np.repeat(np.add.reduceat(counts, side.start[:-1]), group)

    def draw(self, rng: np.random.Generator) -> Vector:
        """Return the residual masses of new labels in the cells."""
        byte = _random_bytes(rng, self._level.size)
        label = byte < self._level
        tied = np.flatnonzero(byte == self._level)
        label[tied] = rng.random(tied.size) < self._rest[tied]
        out = np.empty(self._expected.size)
        replicates.count_ones(label.view(np.uint8), self._start, out)
        out -= self._expected
        out *= self._share
        return out


def _random_bytes(rng: np.random.Generator, size: int) -> NDArray[np.uint8]:
    """Return random bytes, three times as fast as a generator does, the same on all machines."""
    words = rng.bit_generator.random_raw((size + 7) // 8)
    return words.astype("<u8", copy=False).view(np.uint8)[:size]
