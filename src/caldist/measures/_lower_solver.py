"""The lower distance to calibration, enclosed between two bounds that carry their proofs.

The dual problem has two potentials on [0, 1], one per label; the primal one a perfectly calibrated
distribution to which the data are moved. Both are computed on a ladder of nodes much coarser than
the data and then made into proofs for all of the data. Should they not agree to the tolerance, the
ladder is refined. The work is done by the kernels ``ladder`` (data to nodes, nodes to proofs) and
``interior_point`` (the iterations in between).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from caldist._kernels import interior_point, ladder

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

MAX_LEVELS = 6
"""The first nearly always suffices. Each divides the cells by four, until all data are nodes."""

MAX_ITERATIONS = 80
"""Per level. Nine to sixteen are usual; a level that needs more is certified as it stands."""

MAX_NODES = 500_000
"""Finer ladders than this are not tried; an iteration on this one takes 150 MB."""

FINEST_TOLERANCE = 1e-10
"""Smaller tolerances are treated as this one: rounding takes over."""

LADDER_SHARE = 0.25
"""The part of the tolerance that the gap on the ladder itself may use."""

REACH = 0.95
"""How much of a slack or a multiplier one iteration may use up."""

CENTRALITY = 0.01
"""Local steps leave slack times multiplier above this share of the mean."""

START_DEPTH = 0.005
"""The constant potentials that the iterations start from are minus this."""


@dataclass(frozen=True)
class LowerSolution:
    """Certified bounds for the lower distance, and the two proofs.

    Proof of ``lower``: the potentials, linear between the nodes, are 1-Lipschitz and satisfy
    ``(1 - u) r0(u) + u r1(u) <= 0`` on all of [0, 1]; ``lower`` is their mean over the data.
    Proof of ``upper``: the distribution with masses ``calibrated_mass`` at ``calibrated`` has the
    data's label totals when label 1 has probability u at u; ``upper`` is the cost of moving the
    data's labels there.
    """

    lower: float
    upper: float
    node: Array
    potential0: Array
    potential1: Array
    calibrated: Array
    calibrated_mass: Array
    iterations: int
    levels: int


def solve(
    prediction: Array,
    mass0: Array,
    mass1: Array,
    tol: float,
    progress: Callable[[float, float], None] | None = None,
) -> LowerSolution:
    """Enclose the lower distance to within ``tol``, or as closely as the finest ladder allows.

    ``prediction`` is strictly increasing in [0, 1]; the masses are nonnegative and sum to 1 over
    both labels. ``progress`` is called with the bounds after each level.
    """
    tol = max(tol, FINEST_TOLERANCE)
    best = _closed_forms(prediction, mass0, mass1)
    last = np.empty(0)
    for level in range(MAX_LEVELS):
        if best.upper - best.lower <= tol:
            break
        node = _choose_nodes(prediction, mass0, mass1, tol, level)
        if level > 0 and (node.size > MAX_NODES or np.array_equal(node, last)):
            break
        last = node
        best = _combine(best, _solve_level(prediction, mass0, mass1, node, tol))
        if progress is not None:
            progress(best.lower, best.upper)
    # Exact bounds may cross by a rounding error.
    return replace(best, lower=min(best.lower, best.upper))


def _closed_forms(prediction: Array, mass0: Array, mass1: Array) -> LowerSolution:
    """Prove |E y - E v| <= ldCE <= min(E|v - y|, E|v - E y|): exact for one label or one value."""
    sums = np.empty(5)
    ladder.trivial_bounds(prediction, mass0, mass1, sums)
    total0, total1, excess, apart, together = sums.tolist()
    sign = 1.0 if excess > 0.0 else -1.0
    mean = total1 / (total0 + total1)
    if together < apart:
        calibrated, calibrated_mass = np.array([mean]), np.array([total0 + total1])
    else:
        calibrated, calibrated_mass = np.array([0.0, 1.0]), np.array([total0, total1])
    return LowerSolution(
        lower=abs(excess),
        upper=max(abs(excess), min(apart, together)),
        node=np.array([0.0, 1.0]),
        potential0=np.array([0.0, sign]),
        potential1=np.array([-sign, 0.0]),
        calibrated=calibrated,
        calibrated_mass=calibrated_mass,
        iterations=0,
        levels=0,
    )


def _choose_nodes(prediction: Array, mass0: Array, mass1: Array, tol: float, level: int) -> Array:
    """Return the nodes of a ladder for this tolerance; each level divides its cells by four."""
    # Between nodes a gap apart the dual constraint can fail by half the square of the gap.
    widest = 0.5 * tol**0.5
    node = np.empty(prediction.size + 3 + int(1.0 / widest))
    count = ladder.choose_nodes(
        prediction,
        mass0,
        mass1,
        0.25 * tol**0.5 / 4**level,
        tol / 16 ** (level + 1),
        widest,
        0.01 * tol,
        node,
    )
    return node[:count].copy()


def _solve_level(
    prediction: Array, mass0: Array, mass1: Array, node: Array, tol: float
) -> LowerSolution:
    """Solve one ladder and prove its two bounds on the data."""
    count = node.size
    mass = np.empty(2 * count)
    ladder.deposit(prediction, mass0, mass1, node, mass)
    potential, weight, iterations = _solve_ladder(node, mass, tol)
    lower = ladder.prove_lower(node, mass, potential)
    support = np.empty(prediction.size + count)
    support_mass = np.empty(prediction.size + count)
    size, upper = ladder.spread(
        prediction, mass0, mass1, node, mass, weight, potential, support, support_mass
    )
    return LowerSolution(
        lower=lower,
        upper=upper,
        node=node,
        potential0=potential[:count],
        potential1=potential[count:],
        calibrated=support[:size],
        calibrated_mass=support_mass[:size],
        iterations=iterations,
        levels=1,
    )


def _solve_ladder(node: Array, mass: Array, tol: float) -> tuple[Array, Array, int]:
    """Return potentials, calibrated masses and the number of iterations."""
    count = node.size
    potential, slack, depth = np.empty(2 * count), np.empty(4 * count), np.empty(count)
    multiplier, weight = np.empty(4 * count), np.empty(count)
    change, rise, deepening = np.empty(2 * count), np.empty(2 * count), np.empty(count)
    target, factor, force = np.empty(5 * count), np.empty(8 * count), np.empty(2 * count)
    work, bounds = np.empty(5 * count), np.array([0.0, 1.0])
    iterations = 0
    interior_point.start(node, mass, START_DEPTH, potential, slack, depth, multiplier, weight)
    while iterations < MAX_ITERATIONS and bounds[1] - bounds[0] > LADDER_SHARE * tol:
        mean = interior_point.direction(
            node, mass, slack, depth, multiplier, weight,
            factor, force, change, rise, deepening, target,
        )  # fmt: skip
        if mean <= 0.0:
            break
        interior_point.move(
            node, mass, change, rise, deepening, target, REACH, CENTRALITY * mean,
            potential, slack, depth, multiplier, weight, work, bounds,
        )  # fmt: skip
        iterations += 1
    return potential, weight, iterations


def _combine(best: LowerSolution, found: LowerSolution) -> LowerSolution:
    """Take the better of two lower bounds and of two upper bounds, each with its proof."""
    best = replace(
        best, iterations=best.iterations + found.iterations, levels=best.levels + found.levels
    )
    if found.lower > best.lower:
        best = replace(
            best,
            lower=found.lower,
            node=found.node,
            potential0=found.potential0,
            potential1=found.potential1,
        )
    if found.upper < best.upper:
        best = replace(
            best,
            upper=found.upper,
            calibrated=found.calibrated,
            calibrated_mass=found.calibrated_mass,
        )
    return best
