"""Sums over the rows of each cell, where the rows are."""

from __future__ import annotations

import torch
from torch import Tensor

# Rows of one cell would wait for each other on a GPU if all added to one number.
COPIES = 16
_NUMBERS = 2**18  # few cells have more copies, up to so many numbers
_PER_ROW = 8  # and many cells fewer, so that clearing them takes no longer than reading the rows


def cell_sums(cell: Tensor, *columns: Tensor, count: int) -> list[Tensor]:
    """Return the sums of each column of values in each of ``count`` cells.

    On a GPU the rows take turns at several copies of the cells, which are added up at the end.
    """
    copies = copies_for(cell.device.type, count, len(cell))
    if copies > 1:
        cell = cell.clone()
        even = cell[: len(cell) // copies * copies].view(-1, copies)
        even += count * torch.arange(copies, device=cell.device)
    empty = (values.new_zeros(copies * count) for values in columns)
    return [
        sums.index_add_(0, cell, values).view(copies, count).sum(0)
        for sums, values in zip(empty, columns, strict=True)
    ]


def copies_for(device: str, count: int, rows: int) -> int:
    """Return how many copies a kind of device works on."""
    if device != "cuda":
        return 1
    return max(1, min(max(COPIES, _NUMBERS // count), _PER_ROW * rows // count))
