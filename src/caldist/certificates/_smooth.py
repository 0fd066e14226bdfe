"""The certificate of smCE: a Lipschitz witness and the monotone curve that proves it optimal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from caldist._util.types import Vector
from caldist.certificates._base import (
    SLACK,
    JointCertificate,
    fail,
    lipschitz,
    support,
    vector,
)


@dataclass(frozen=True, eq=False)
class SmoothCertificate(JointCertificate):
    r"""A proof of the smooth calibration error.

    Attributes
    ----------
    knot, height
        The witness w: 1-Lipschitz, between -1 and 1, linear between its knots. It proves
        smCE ≥ E[(y - v) w(v)], the ``lower`` bound. Where w is high the predictions are too low,
        compared with where it is low. Call :meth:`witness` for its value anywhere.
    curve
        The dual: a monotone x from 0 to T = E[y - v], one value for each stretch between
        neighbouring predictions and T at the end. With S the prefix sums of the residuals it
        proves smCE ≤ \|T\| + Σ (v_{i+1} - v_i) \|S_i - x_i\|, the ``upper`` bound, because
        Σ c_i w(v_i) = Σ (x_i - x_{i-1}) w(v_i) - Σ (S_i - x_i)(w(v_{i+1}) - w(v_i)) for every w.
    """

    measure: ClassVar[str] = "smooth_ce"

    knot: Vector
    height: Vector
    curve: Vector

    def witness(self, prediction: ArrayLike) -> Vector:
        """Evaluate the witness w at any predictions."""
        return np.asarray(np.interp(np.asarray(prediction, np.float64), self.knot, self.height))

    def _prove_lower(self) -> float:
        v, mass0, mass1 = self._distribution()
        knot = support("knot", self.knot)
        height, excess = lipschitz("height", knot, self.height)
        beyond = max(0.0, float(np.abs(height).max()) - 1)
        if not beyond <= SLACK:
            fail("height leaves [-1, 1]")
        attained = float(((mass1 * (1 - v) - mass0 * v) * np.interp(v, knot, height)).sum())
        return attained - excess - beyond

    def _prove_upper(self) -> float:
        v, mass0, mass1 = self._distribution()
        curve = vector("curve", self.curve, v.size)
        sums = np.cumsum(mass1 * (1 - v) - mass0 * v)
        total = float(sums[-1])
        missing = abs(float(curve[-1]) - total)
        if not missing <= SLACK:
            fail(f"curve ends at {curve[-1]} instead of {total}")
        # The steps count with their absolute sum, so one against the direction of T counts twice.
        steps = np.diff(curve, prepend=0.0) * (1.0 if total >= 0 else -1.0)
        backwards = float(np.maximum(-steps, 0.0).sum())
        if not backwards <= SLACK:
            fail("curve is not monotone from 0")
        apart = float((np.diff(v) * np.abs(sums - curve)[:-1]).sum())
        return abs(total) + apart + 2 * backwards + 2 * missing
