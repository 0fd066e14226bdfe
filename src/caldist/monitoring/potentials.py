r"""Payoffs for the distance: dual potentials that were fitted to the past.

Potentials (r₀, r₁) are feasible if they are 1-Lipschitz, (1 − u) r₀(u) + u r₁(u) ≤ 0 on [0, 1] and
\|r\| ≤ 1. In a coupling of (v, y) with a calibrated (u, y), r_y(v) ≤ r_y(u) + \|u − v\|, and
r_y(u) has mean at most 0: so the payoff r_y(v) has mean at most ldCE, whatever the potentials were
fitted to, as long as the fit did not see the batch that they are paid on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from caldist._util.types import Vector
from caldist.measures import lower_solver

_TOLERANCE = 1e-3
_ROUNDING = 1e-12  # taken off, so that rounding leaves the constraints satisfied


@dataclass(frozen=True, eq=False)
class Potentials:
    """Feasible potentials, linear between the nodes."""

    node: Vector
    potential0: Vector
    potential1: Vector

    def at(self, v: Vector) -> tuple[Vector, Vector]:
        """Return r₀ and r₁ at each prediction.

        Cutting at −1 from below keeps them feasible: r₀(u) ≤ u and r₁(u) ≤ 1 − u.
        """
        return (
            np.maximum(np.interp(v, self.node, self.potential0) - _ROUNDING, -1.0),
            np.maximum(np.interp(v, self.node, self.potential1) - _ROUNDING, -1.0),
        )


def fit(v: Vector, mass0: Vector, mass1: Vector, tol: float = _TOLERANCE) -> Fit | None:
    """Return the best potentials for masses at increasing predictions; None without mass."""
    total = float(mass0.sum() + mass1.sum())
    if total <= 0:
        return None
    found = lower_solver.solve(v, mass0 / total, mass1 / total, tol)
    lower = max(0.0, found.lower)
    return Fit(
        Potentials(found.node, found.potential0, found.potential1),
        lower,
        max(lower, found.upper),
    )


@dataclass(frozen=True, eq=False)
class Fit:
    """The best potentials for some masses, and what ldCE of these lies between."""

    potentials: Potentials
    lower: float
    upper: float
