"""Labels of many rows drawn from their predictions, with a random byte each."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from caldist._util.types import Integers, Vector
from caldist.kernels.arrays import prefix_sums
from caldist.kernels.loader import replicates

_LEVELS = 256  # of a byte


class RandomLabels:
    """Labels of rows that are sorted, ``count[i]`` of them having the prediction ``prediction[i]``.

    A byte below ⌊256 v⌋ is label 1, one above it label 0. It decides but for one row in 256, which
    gets a uniform number for the rest: a label is 1 with probability v to all digits. That is four
    times as fast as a uniform number for each row.

    Attributes
    ----------
    start
        The first row of each prediction, and the number of rows.
    """

    def __init__(self, prediction: Vector, count: Integers) -> None:
        whole = np.minimum(np.floor(_LEVELS * prediction), _LEVELS - 1)
        self.start = prefix_sums(count)
        self._level = np.repeat(whole.astype(np.uint8), count)
        self._rest = _LEVELS * prediction - whole

    def draw(self, rng: np.random.Generator) -> NDArray[np.uint8]:
        """Draw the label of each row."""
        byte = random_bytes(rng, self._level.size)
        label = byte < self._level
        tied = np.flatnonzero(byte == self._level)
        of = tied  # where every row has a prediction of its own
        if self._rest.size < self._level.size:
            of = np.searchsorted(self.start, tied, side="right") - 1
        label[tied] = rng.random(tied.size) < self._rest[of]
        return label.view(np.uint8)

    def ones(self, rng: np.random.Generator, start: Integers) -> Vector:
        """Draw labels, and return how many are 1 from each start to the next one."""
        out = np.empty(start.size - 1)
        replicates.count_ones(self.draw(rng), start, out)
        return out


def random_bytes(rng: np.random.Generator, size: int) -> NDArray[np.uint8]:
    """Return random bytes, three times as fast as a generator does, the same on all machines."""
    if not isinstance(rng.bit_generator, np.random.PCG64 | np.random.PCG64DXSM | np.random.SFC64):
        return np.frombuffer(rng.bytes(size), dtype=np.uint8)  # raw words may have 32 bits only
    words = rng.bit_generator.random_raw((size + 7) // 8)
    return words.astype("<u8", copy=False).view(np.uint8)[:size]
