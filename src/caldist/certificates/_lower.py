"""The certificate of ldCE: dual potentials below, a calibrated distribution above."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from caldist._util.results import Result
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
class Coupling(Result):
    """Where mass moves: ``mass`` of rows with ``label`` goes from ``source`` to ``target``.

    Each is an array with an entry for each move; the masses add up to 1. ``to_frame`` has a line
    for each move.
    """

    label: NDArray[np.int64]
    source: Vector
    target: Vector
    mass: Vector

    def _lines(self) -> list[dict[str, Any]]:
        columns = self.to_dict()
        moves = zip(*columns.values(), strict=True)
        return [dict(zip(columns, move, strict=True)) for move in moves]

    def __str__(self) -> str:
        cost = float((self.mass * np.abs(self.target - self.source)).sum())
        return f"{self.mass.size:,} moves of mass that cost {cost:.4g} in all"


@dataclass(frozen=True, eq=False)
class LowerCertificate(JointCertificate):
    r"""A proof of the lower distance to calibration.

    Attributes
    ----------
    node, potential0, potential1
        The dual: two functions on [0, 1], linear between the nodes and 1-Lipschitz, with
        (1 - u) r0(u) + u r1(u) ≤ 0 for every u. In any coupling of the data with a calibrated
        (u, y), r_y(v) ≤ r_y(u) + \|u - v\|, and r_y(u) has mean at most 0. So
        ldCE ≥ E[r_y(v)], the ``lower`` bound.
    calibrated, calibrated_mass
        The primal: predictions u_j with masses m_j, of which the share u_j has label 1: a perfectly
        calibrated distribution with the data's label totals. Moving each label's mass there, in
        order, costs ``upper``. :meth:`coupling` lists the moves.
    """

    measure: ClassVar[str] = "lower_distance"

    node: Vector
    potential0: Vector
    potential1: Vector
    calibrated: Vector
    calibrated_mass: Vector

    def coupling(self) -> Coupling:
        """Return the moves that turn the data into the calibrated distribution.

        Within a label, mass moves in order: the lowest prediction to the lowest calibrated one,
        which is the cheapest way on a line.
        """
        v, mass0, mass1 = self._distribution()
        u, m = self.calibrated, self.calibrated_mass
        parts = []
        for label, have, want in ((0, mass0, (1 - u) * m), (1, mass1, u * m)):
            parts.append(_move_in_order(label, v, have, u, want))
        return Coupling(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))

    def _prove_lower(self) -> float:
        return dual_bound(*self._distribution(), self.node, self.potential0, self.potential1)

    def _prove_upper(self) -> float:
        v, mass0, mass1 = self._distribution()
        u = support("calibrated", self.calibrated)
        m = vector("calibrated_mass", self.calibrated_mass, u.size)
        if m.min() < 0:
            fail("calibrated_mass is negative")
        cost = 0.0
        for have, want in ((mass0, (1 - u) * m), (mass1, u * m)):
            missing = abs(float(have.sum() - want.sum()))
            if not missing <= SLACK:
                fail(f"the calibrated distribution misses the data's label totals by {missing}")
            cost += _transport_cost(v, have, u, want) + missing  # moved by at most 1
        return cost


def dual_bound(
    v: Vector,
    mass0: Vector,
    mass1: Vector,
    node: object,
    potential0: object,
    potential1: object,
) -> float:
    """Check dual potentials and return the lower bound on ldCE that they prove.

    The masses of both labels together add up to 1; the predictions may come in any order.
    """
    u = support("node", node)
    if u[0] != 0 or u[-1] != 1:
        fail("node does not reach from 0 to 1")
    r0, excess0 = lipschitz("potential0", u, potential0)
    r1, excess1 = lipschitz("potential1", u, potential1)
    # On a stretch of length d from a, with slopes s0 and s1, the constraint is the quadratic
    # q(t) = q(0) + t (s0 (1 - a) + s1 a + r1 - r0) + t^2 (s1 - s0), largest at an end or between.
    start, d = u[:-1], np.diff(u)
    s0, s1 = np.diff(r0) / d, np.diff(r1) / d
    ends = (1 - u) * r0 + u * r1
    slope = s0 * (1 - start) + s1 * start + (r1 - r0)[:-1]
    bend = s1 - s0
    if not (np.isfinite(slope).all() and np.isfinite(bend).all()):
        fail("node has steps that are too short to compute with")
    inside = (bend < 0) & (slope > 0) & (slope < -2 * bend * d)
    peak = ends[:-1][inside] - slope[inside] ** 2 / (4 * bend[inside])
    violation = float(np.concatenate((ends, peak)).max(initial=0.0))  # NaN if any of them is
    if not violation <= SLACK:
        fail("the potentials violate (1 - u) r0(u) + u r1(u) <= 0")
    # Made Lipschitz, each potential moves by at most its excess; lowering both by the violation
    # and by the larger excess restores the constraint.
    lost = violation + 2 * max(excess0, excess1)
    return float((mass0 * np.interp(v, u, r0) + mass1 * np.interp(v, u, r1)).sum()) - lost


def _transport_cost(v: Vector, have: Vector, u: Vector, want: Vector) -> float:
    """Return the least cost of moving ``have`` at v to ``want`` at u: the area between the sums."""
    place = np.concatenate((v, u))
    order = np.argsort(place, kind="stable")
    flow = np.cumsum(np.concatenate((have, -want))[order])
    return float((np.diff(place[order]) * np.abs(flow)[:-1]).sum())


def _move_in_order(
    label: int, v: Vector, have: Vector, u: Vector, want: Vector
) -> tuple[NDArray[np.int64], Vector, Vector, Vector]:
    """Cut both cumulative masses at each other's steps; every piece is one move."""
    total = have.sum()
    above, below = np.cumsum(have), np.cumsum(want) * (total / want.sum() if want.sum() else 0.0)
    cuts = np.unique(np.concatenate((above, below)))
    mass = np.diff(cuts, prepend=0.0)
    middle = cuts - mass / 2
    source = v[np.minimum(np.searchsorted(above, middle), v.size - 1)]
    target = u[np.minimum(np.searchsorted(below, middle), u.size - 1)]
    moved = mass > 0
    labels = np.full(int(moved.sum()), label, dtype=np.int64)
    return labels, source[moved], target[moved], mass[moved]
