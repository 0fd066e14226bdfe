"""Many rows onto a grid in one pass, which checks them too: no sort, no copy, several threads.

A finer grid after a coarser one only has room for cells within those that have rows, so that
predictions which lie close together can be told apart by many bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caldist._kernels import sums
from caldist._util.threads import even_parts, in_threads, thread_count
from caldist.data.grid import Grid

_ROWS_PER_THREAD = 2**17  # from which a thread repays its start
_ROWS_PER_CELL = 4  # of each thread's own cells; with fewer, adding them up takes too long
_NO_COUNTS, _NO_MASSES = np.empty(0, np.int64), np.empty(0)


@dataclass(frozen=True, eq=False)
class Layout:
    """Which cells there is room for: those of some blocks, one block after the other.

    Block k holds the 2^shift cells from k 2^shift on; ``start`` is its place, -1 for blocks without
    rows.
    """

    bits: int
    shift: int
    block: NDArray[np.int64]
    start: NDArray[np.int64]

    @classmethod
    def of(cls, bits: int, coarser: Grid | None) -> Layout:
        """Return the layout of a grid, within the cells of a coarser one where that is known."""
        shift = bits if coarser is None else bits - coarser.bits
        blocks = 2 ** (bits - shift)
        block = np.arange(blocks + 1) if coarser is None else coarser.cell
        start = np.full(blocks + 1, -1, np.int64)
        start[block] = np.arange(block.size, dtype=np.int64) << shift
        return cls(bits, shift, block, start)

    @property
    def size(self) -> int:
        """How many cells there is room for."""
        last = self.block.size and self.block[-1] == self.start.size - 1  # v = 1: one cell
        return (self.block.size << self.shift) - (2**self.shift - 1 if last else 0)

    def number(self, place: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the numbers of the cells at some places."""
        number: NDArray[np.int64] = self.block[place >> self.shift] << self.shift
        number += place & (2**self.shift - 1)
        return number


def grid_of(
    reader: Callable[[int, int], Any], n_rows: int, layout: Layout, *, weighted: bool
) -> Grid | None:
    """Return the grid of rows, or None where one of them is not valid or has no place.

    ``reader`` gives the rows between two numbers. Sums of weights are rounded, so that one thread
    adds them up; integers may be added up by several.
    """
    parts = min(
        thread_count(), n_rows // _ROWS_PER_THREAD, n_rows // (_ROWS_PER_CELL * layout.size)
    )
    part_rows = even_parts(n_rows, 1 if weighted else max(parts, 1))
    kind: type = np.float64 if weighted else np.int64
    found: NDArray[Any] = np.zeros((len(part_rows), 6 * layout.size), kind)

    def fill(part: int) -> bool:
        rows = reader(*part_rows[part])
        sums_of = (_NO_COUNTS, found[part]) if weighted else (found[part], _NO_MASSES)
        return bool(sums.cells(rows, layout.bits, layout.shift, layout.start, *sums_of))

    if not all(in_threads(fill, range(len(found)))):
        return None
    return _listed(layout, found.sum(axis=0) if len(found) > 1 else found[0], n_rows)


def _listed(layout: Layout, found: NDArray[Any], n_rows: int) -> Grid:
    """Return the sums of the cells that have rows."""
    table = found.reshape(-1, 6)
    place = np.flatnonzero(table[:, 0] + table[:, 3] > 0)
    if place.size < len(table):
        table = table[place]
    names = ("count0", "place0", "square0", "count1", "place1", "square1")
    columns = dict(zip(names, np.ascontiguousarray(table.T), strict=True))
    return Grid(layout.bits, layout.number(place), **columns, n_rows=n_rows)
