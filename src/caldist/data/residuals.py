"""``Residuals``: all that most measures need to know of rows."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from caldist._util.threads import even_parts, in_threads
from caldist._util.types import Vector
from caldist.kernels.loader import support

if TYPE_CHECKING:
    from caldist.data.joint import Joint

_PART = 2**16  # that a thread takes at a time; as many whatever the number of threads


def parts_of(size: int) -> list[slice]:
    """Return the parts in which threads go through many values."""
    return [slice(*ends) for ends in even_parts(size, max(1, size // _PART))]


class Residuals(NamedTuple):
    """Distinct predictions v_i, increasing, and the residual mass E[(y - v) 1(v = v_i)] of each."""

    prediction: Vector
    mass: Vector

    @classmethod
    def of(cls, joint: Joint) -> Residuals:
        """Return those of a distribution."""
        return cls(joint.prediction, joint.residual())

    def sums(self) -> Vector:
        """Return 0 and the sums of the first 1, 2, … masses: E[(y - v) 1(v <= v_i)]."""
        parts = parts_of(self.mass.size)
        total = in_threads(lambda part: float(support.total(self.mass[part])), parts)
        before = itertools.accumulate(total, initial=0.0)
        sums = np.empty(self.mass.size + 1)
        sums[0] = 0.0
        after = sums[1:]
        in_threads(
            lambda task: support.running_sums(self.mass[task[0]], task[1], after[task[0]]),
            zip(parts, before, strict=False),
        )
        return sums

    def absolute(self) -> float:
        """Return the sum of the masses without their signs: ECE."""
        found = in_threads(
            lambda part: float(np.abs(self.mass[part]).sum()), parts_of(self.mass.size)
        )
        return sum(found)
