"""The certificate of udCE: a map to calibrated predictions, and the dual of ldCE below."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from caldist._util.types import Vector
from caldist.certificates._base import SLACK, JointCertificate, fail, vector
from caldist.certificates._lower import dual_bound


@dataclass(frozen=True, eq=False)
class UpperCertificate(JointCertificate):
    r"""A proof of bounds on the upper distance to calibration.

    Attributes
    ----------
    group, recalibrated
        The map κ: the prediction ``prediction[i]`` goes to ``recalibrated[group[i]]``, which
        is the frequency of label 1 in its group, so the result is perfectly calibrated. It proves
        udCE ≤ E\|v - κ(v)\|, the ``upper`` bound.
    node, potential0, potential1
        The dual of the lower distance, which proves udCE ≥ ldCE ≥ ``lower``.
    exact
        Whether the solver says that no other map is better. ``verify`` does not prove this.
    """

    measure: ClassVar[str] = "upper_distance"

    group: NDArray[np.int64]
    recalibrated: Vector
    node: Vector
    potential0: Vector
    potential1: Vector
    exact: bool

    def _prove_lower(self) -> float:
        return dual_bound(*self._distribution(), self.node, self.potential0, self.potential1)

    def _prove_upper(self) -> float:
        if self.value != self.upper:
            fail(f"value {self.value} is not the cost of the map, {self.upper}")
        v, mass0, mass1 = self._distribution()
        target = vector("recalibrated", self.recalibrated)
        group = self.group
        if type(group) is not np.ndarray or group.shape != v.shape or group.dtype != np.int64:
            fail("group is not one integer for each prediction")
        if not isinstance(self.exact, bool):
            fail(f"exact is {self.exact!r}")
        if group.min() < 0 or group.max() >= target.size:
            fail("group points outside recalibrated")
        mass = np.bincount(group, mass0 + mass1, minlength=target.size)
        ones = np.bincount(group, mass1, minlength=target.size)
        if (mass == 0).any():
            fail("recalibrated lists a group without mass")
        frequency = ones / mass
        if not np.abs(frequency - target).max() <= SLACK:
            fail("recalibrated is not the frequency of label 1 in its group")
        return float(((mass0 + mass1) * np.abs(v - frequency[group])).sum())
