"""Sums over the rows of each cell, where the rows are."""

from __future__ import annotations

import torch
from torch import Tensor

# Rows of one cell would wait for each other on a GPU if all added to one number.
COPIES = 16
_NUMBERS = 2**18  # few cells have more copies, up to so many numbers


def cell_sums(cell: Tensor, values: Tensor, count: int) -> Tensor:
    """Return the sums of the values in each of ``count`` cells; of a matrix, of each column.

    On a GPU the rows take turns at several copies of the cells, which are added up at the end.
    """
    copies = copies_for(cell.device.type, count)
    if copies > 1:
        cell = cell.clone()
        even = cell[: len(cell) // copies * copies].view(-1, copies)
        even += count * torch.arange(copies, device=cell.device)
    sums = values.new_zeros((copies * count, *values.shape[1:]))
    return sums.index_add_(0, cell, values).view(copies, count, *values.shape[1:]).sum(0)


def copies_for(device: str, count: int) -> int:
    """Return how many copies a kind of device works on."""
    return max(COPIES, _NUMBERS // count) if device == "cuda" else 1
