"""The lower distance to calibration, ldCE."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from caldist._util.progress import bounds_bar
from caldist._util.types import Vector
from caldist.certificates import LowerCertificate
from caldist.data import validate
from caldist.data.grid import Grid
from caldist.data.joint import Joint
from caldist.data.rows import Rows
from caldist.errors import ToleranceError
from caldist.kernels.loader import ladder, replicates
from caldist.measures import lower_solver
from caldist.measures._rounding import around, better_of
from caldist.measures.base import NOT_A_NORM, Worst, measure
from caldist.measures.lower_solver import LowerSolution

TOLERANCE = 1e-6
_DUAL_TOLERANCE = 1e-4  # of duals from a part of the rows, whose noise is larger


def certify_lower(joint: Joint, *, tol: float, progress: bool = False) -> LowerCertificate:
    """Enclose ldCE of a joint distribution."""
    solution = _solve(joint, tol, progress=progress)
    # Rounding may put bounds that coincide an ulp apart in the wrong order, or below 0.
    lower = max(0.0, min(solution.lower, solution.upper))
    return LowerCertificate.of(
        joint,
        value=lower,
        lower=lower,
        upper=max(lower, solution.upper),
        node=solution.node,
        potential0=solution.potential0,
        potential1=solution.potential1,
        calibrated=solution.calibrated,
        calibrated_mass=solution.calibrated_mass,
    )


def _solve(joint: Joint, tol: float, *, progress: bool = False) -> LowerSolution:
    mass0, mass1 = joint.normalized()
    with bounds_bar("lower distance", show=progress) as report:
        return lower_solver.solve(joint.prediction, mass0, mass1, tol, report)


def _rounding_bounds(
    joint: Joint, value: float, *, tol: float = TOLERANCE, **_: object
) -> tuple[float, float]:
    """Bound ldCE: it moves by at most E|v - v'|, and the value is known to its tolerance.

    Rows on a grid, shared between the edges of their cells, give a better lower end: potentials
    that are linear in each cell have the same mean over the rows and over the edges, and between
    edges they fail their constraint by at most half the square of the cells' width.
    """
    grid = joint.grid
    moved = joint.radius if grid is None else sum(map(np.sum, grid.spreads)) / joint.total
    lower, upper = around(value, float(moved))
    bounds = lower, upper + tol
    if grid is None:
        return bounds
    below = _solve(_on_edges(grid), tol).lower - grid.width**2 / 2 - grid.resolution
    return better_of(bounds, (below, math.inf))


def _on_edges(grid: Grid) -> Joint:
    """Return the rows shared between the edges of their cells so that each label's mean stays."""
    node, at, inside = grid.edges()
    masses = []
    for count, first, _ in grid.fractions():
        mass = np.zeros(node.size)
        mass[at] = count - first
        mass[at[inside] + 1] += first[inside]
        masses.append(mass)
    there = masses[0] + masses[1] > 0
    return Joint(node[there], masses[0][there], masses[1][there])


def _encloses(joint: Joint, *, tol: float = TOLERANCE, **others: Any) -> tuple[float, float, float]:
    value = lower_distance.using(tol=tol, **others).of(joint)
    return value, value, value + tol


def _dual(v: Vector, mass0: Vector, mass1: Vector, **_: object) -> tuple[Vector, Vector]:
    """Return the potentials of a proof, which are feasible everywhere."""
    there = np.flatnonzero(mass0 + mass1)
    zeros, ones = mass0[there], mass1[there]
    total = float(zeros.sum() + ones.sum())
    found = lower_solver.solve(v[there], zeros / total, ones / total, _DUAL_TOLERANCE)
    out = np.empty_like(v), np.empty_like(v)
    ladder.interpolate(v, found.node, found.potential0, found.potential1, *out)
    return out


def _noise(prediction: Vector, changes: Vector) -> float:
    """Bound how far ldCE moves when masses change.

    The optimal dual potentials are 1-Lipschitz and vanish at one end of [0, 1] each, so ldCE moves
    by at most the integral that ``label_deviation`` returns: no replicate needs a solver.
    """
    return float(replicates.label_deviation(prediction, changes))


@measure(
    symbol="ldCE",
    summary="least distance to calibration that predictions and labels allow",
    position=30,
    shown_in=("evaluate", "measure", "report", "groups"),
    encloses=_encloses,
    rounding=_rounding_bounds,
    dual=_dual,
    noise=_noise,
    interval="distance",
    no_comparison=NOT_A_NORM,
    worst=Worst(bias=0.0, reach=2.0),
    certify=certify_lower,
)
def lower_distance(
    y_true: ArrayLike | Joint,
    y_prob: ArrayLike | None = None,
    *,
    tol: float = TOLERANCE,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    progress: bool = False,
) -> float:
    r"""Return the lower distance to calibration, within ``tol``.

    .. math:: \mathrm{ldCE} = \min E\,|u - v|

    over all couplings of the data's (v, y) with a u such that (u, y) is perfectly calibrated; u
    ranges over all of [0, 1].

    **What it means.** The least that the distance to calibration can be, given only predictions and
    labels: no domain and no predictor with these predictions and labels is closer. Always at least
    \|E[y - v]\|, and :math:`\tfrac12 \mathrm{ldCE} \le \mathrm{smCE} \le 2\,\mathrm{ldCE}`.

    **What it estimates.** The population's value, at rate 1/√n.

    **Cost.** A sort, and an interior-point solver on a few thousand nodes whatever n is. The value
    is the proved lower end of an interval no wider than ``tol``; :func:`caldist.certify` returns
    the interval with its proof.

    Parameters
    ----------
    y_true : array-like of 0 and 1, or Joint
        A joint stands for labels, predictions and weights at once.
    y_prob : array-like in [0, 1]
        The predicted probability of label 1.
    tol : float
        How wide the certified interval may be. What a joint on a grid leaves open does not count;
        :func:`caldist.evaluate` returns bounds that allow for it.
    sample_weight : array-like, optional
    pos_label : optional
        The value of ``y_true`` that counts as label 1, where labels are not 0 and 1.
    progress : bool
        Show a progress bar after two seconds.

    Raises
    ------
    caldist.errors.ToleranceError
        If the interval stays wider than ``tol``; it carries the valid bounds.

    Examples
    --------
    >>> import caldist
    >>> round(caldist.lower_distance([0, 1, 0, 1], [0.25, 0.5, 0.5, 0.75]), 5)
    0.04167
    """
    tol = validate.check_positive("tol", tol)
    progress = validate.check_flag("progress", progress)
    joint = Rows.of(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label).joint
    certificate = certify_lower(joint, tol=tol, progress=progress)
    if certificate.gap > tol:
        message = (
            f"the lower distance is between {certificate.lower!r} and {certificate.upper!r}, but "
            f"tol={tol!r} could not be reached: use a larger tol, or caldist.certify for the "
            "interval with its proof."
        )
        raise ToleranceError(message, certificate.lower, certificate.upper)
    return certificate.value
