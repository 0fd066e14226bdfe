"""How predictions are counted in cells, for the CPU and for a GPU: see ``_kernel_cells``."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

ONE = 0x3F800000  # the bits of 1.0 in float32
STRETCH = 15  # the floats of a stretch differ in so many bits
FLOATS = 2**STRETCH - 1
STRETCHES = (ONE >> STRETCH) + 1
SAMPLE = 2**16
FINER = 3  # a stretch has 2^FINER cells for each row that the sample has in it, or fewer
# A stretch without such a row has one cell. A mark, which the sample has thrice, adds two.
CELLS = (SAMPLE << FINER) + STRETCHES + SAMPLE
SPARED = 2  # a mark with many rows has a copy for 2^SPARED rows of the sample, or fewer
MANY = 256
COPIES = SAMPLE >> SPARED
NO_MARK = 2**31 - 1
# In a sum the number of rows is above these bits, and the sum of their places in them.
PLACES = 36
PLACE_BITS = 8
ROUNDED = 1e-14  # by how much sums over all rows, in float64, may be off
ROUNDING = 2.0**-23  # of P, D and the gradient, which are float32


@dataclass(frozen=True)
class Plan:
    """Where a prediction is counted.

    Attributes
    ----------
    stretch
        Of each stretch, in one integer: above 32 bits, those of the prediction with a cell of its
        own, or NO_MARK; below, 16 times the first cell and the bits in which the floats of a cell
        differ.
    copies
        Of each stretch, 16 times the first copy of the sums of its mark, and the logarithm of how
        many there are; -1 where one is enough.
    """

    stretch: Tensor
    copies: Tensor
