"""Sums over the rows of each cell, where the rows are."""

from __future__ import annotations

import torch
from torch import Tensor

# Rows of one cell would wait for each other on a GPU if all added to one number.
COPIES = 16
_NUMBERS = 2**18  # few cells have more copies, up to so many numbers
_PER_ROW = 8  # and many cells fewer, so that clearing them takes no longer than reading the rows


def cell_sums(cell: Tensor, values: Tensor, count: int) -> Tensor:
    """Return the sums of the values in each of ``count`` cells; of a matrix, of each column."""
    return add_to_cells(values.new_zeros((count, *values.shape[1:])), cell, values)


def add_to_cells(sums: Tensor, cell: Tensor, values: Tensor) -> Tensor:
    """Add the values to the sums of their cells, in place, and return the sums.

    On a GPU the rows take turns at several copies of the cells, which are added up at the end.
    """
    count, *columns = sums.shape
    copies = copies_for(cell.device.type, count, len(cell))
    if copies == 1:
        return sums.index_add_(0, cell, values)
    cell = cell.clone()
    even = cell[: len(cell) // copies * copies].view(-1, copies)
    even += count * torch.arange(copies, device=cell.device)
    parts = sums.new_zeros((copies * count, *columns)).index_add_(0, cell, values)
    return sums.add_(parts.view(copies, count, *columns).sum(0))


def copies_for(device: str, count: int, rows: int) -> int:
    """Return how many copies a kind of device works on."""
    if device != "cuda":
        return 1
    return max(1, min(max(COPIES, _NUMBERS // count), _PER_ROW * rows // count))
