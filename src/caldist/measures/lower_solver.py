"""The lower distance to calibration, enclosed between two bounds that carry their proofs.

The dual problem has two potentials on [0, 1], one per label; the primal one a perfectly calibrated
distribution to which the data are moved. Both are computed on a ladder of nodes much coarser than
the data and then made into proofs for all of the data. Should they not agree to the tolerance, the
ladder is refined. The work is done by the kernels ``ladder`` (data to nodes, nodes to proofs) and
``interior_point`` (the iterations in between).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from caldist.kernels.loader import interior_point, ladder

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


class Ladder(NamedTuple):
    """Nodes, and the solution on them: potentials of label 0 and label 1, and calibrated masses."""

    node: Array
    potential: Array
    mass: Array


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
    data = prediction, mass0, mass1
    below, above = _closed_forms(*data)
    last = np.empty(0)
    iterations = levels = 0
    for level in range(MAX_LEVELS):
        if above.bound - below.bound <= tol:
            break
        node = _choose_nodes(*data, tol, level)
        if level > 0 and (node.size > MAX_NODES or np.array_equal(node, last)):
            break
        last = node
        mass = _deposit(*data, node)
        solved, steps = _solve_ladder(node, mass, tol)
        below, above = _better(below, above, *_prove(*data, mass, solved))
        iterations, levels = iterations + steps, levels + 1
        if progress is not None:
            progress(below.bound, above.bound)
    return LowerSolution(
        lower=min(below.bound, above.bound),  # exact bounds may cross by a rounding error
        upper=above.bound,
        node=below.node,
        potential0=below.potential0,
        potential1=below.potential1,
        calibrated=above.calibrated,
        calibrated_mass=above.mass,
        iterations=iterations,
        levels=levels,
    )


class _Dual(NamedTuple):
    """A lower bound and its potentials."""

    bound: float
    node: Array
    potential0: Array
    potential1: Array


class _Primal(NamedTuple):
    """An upper bound and its calibrated distribution."""

    bound: float
    calibrated: Array
    mass: Array


def _closed_forms(prediction: Array, mass0: Array, mass1: Array) -> tuple[_Dual, _Primal]:
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
    return (
        _Dual(abs(excess), np.array([0.0, 1.0]), np.array([0.0, sign]), np.array([-sign, 0.0])),
        _Primal(max(abs(excess), min(apart, together)), calibrated, calibrated_mass),
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


def _deposit(prediction: Array, mass0: Array, mass1: Array, node: Array) -> Array:
    """Return the masses shared between the nodes, of label 0 and then of label 1."""
    mass = np.empty(2 * node.size)
    ladder.deposit(prediction, mass0, mass1, node, mass)
    return mass


def _solve_ladder(node: Array, mass: Array, tol: float) -> tuple[Ladder, int]:
    """Solve a ladder; return how many steps it took, too."""
    found = Ladder(node, np.empty(2 * node.size), np.empty(node.size))
    steps = interior_point.solve(
        node, mass, START_DEPTH, MAX_ITERATIONS, LADDER_SHARE * tol, REACH, CENTRALITY, *found[1:]
    )
    return found, steps


def _prove(
    prediction: Array, mass0: Array, mass1: Array, mass: Array, solved: Ladder
) -> tuple[_Dual, _Primal]:
    """Prove the two bounds of a ladder on the data, of which ``mass`` is on its nodes."""
    node, count = solved.node, solved.node.size
    potential = solved.potential.copy()
    lower = ladder.prove_lower(node, mass, potential)
    support, support_mass = np.empty(prediction.size + count), np.empty(prediction.size + count)
    size, upper = ladder.spread(
        prediction, mass0, mass1, node, mass, solved.mass, potential, support, support_mass
    )
    return (
        _Dual(lower, node, potential[:count], potential[count:]),
        _Primal(upper, support[:size], support_mass[:size]),
    )


def _better(below: _Dual, above: _Primal, dual: _Dual, primal: _Primal) -> tuple[_Dual, _Primal]:
    """Return the larger of two lower bounds and the smaller of two upper ones."""
    return (
        dual if dual.bound > below.bound else below,
        primal if primal.bound < above.bound else above,
    )
