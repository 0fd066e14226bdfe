"""Statistics under perfect calibration: the predictions stay, the labels are drawn anew.

Every statistic is a function of the residual masses on the support. The values of B replicates and
the observed one are exchangeable under calibration, whatever the statistic, so its rank among them
gives an exact p-value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from caldist._util.types import Vector
from caldist.data.joint import Joint
from caldist.inference.limits import few_parts
from caldist.inference.noise import Statistic
from caldist.inference.resampling import Resampler
from caldist.inference.sample import Draw, Units

_FAMILY = 40  # the random streams of these draws
_ROUNDING = 1e-12  # values this close count as equal: sums in another order differ by less


def drawing_error(joint: Joint) -> float:
    """Bound by how much a test that draws labels from rounded predictions may miss its level.

    It is the total variation distance between labels that follow the rows' own predictions and
    labels that follow the rounded ones. Of cells it is known; otherwise a label changes with
    probability E|v - v'| at most, row by row.
    """
    if joint.radius == 0:
        return 0.0
    if joint.grid is not None:
        return joint.grid.drawing_error
    if joint.n_rows is None or not joint.counts_rows:
        return 1.0  # a mean over weights does not say how far light rows have moved
    return min(1.0, joint.n_rows * joint.radius)


def label_dependence(units: Units) -> float:
    """Return how much the labels that a test draws depend within a cluster.

    As much as they seem to; as much as they can where very few clusters say so.
    """
    return 1.0 if few_parts(units) else units.dependence


def null_values(
    units: Units,
    of: Callable[[Vector], Sequence[float] | Vector],
    resampler: Resampler,
    draw: Draw | None = None,
) -> Vector:
    """Return the statistics of the sample, then of each replicate, a row each.

    Unless ``draw`` says otherwise, independent rows get new labels. Clusters get a common random
    sign for their residuals, because nobody knows how the labels within one depend on each other.
    """
    if draw is None:
        draw = units.draw if units.cluster is None else units.flip
    drawn = resampler.run(lambda rng: of(draw(rng)), family=_FAMILY, size=units.n_rows)
    return np.vstack((np.array([of(units.residual)], dtype=np.float64), drawn))


def null_ranks(
    units: Units,
    statistics: Sequence[Statistic],
    resampler: Resampler,
    draw: Draw | None = None,
) -> tuple[Vector, NDArray[np.int64]]:
    """Return the values of the statistics of the sample, and :func:`ranks` of all rows."""
    if len(statistics) == 1 and (unless_below := statistics[0].unless_below) is not None:
        # Only the rank of the sample is asked for, and nothing of the values below it.
        floor = float(_floor(np.array(statistics[0].of(units.residual))))
        values = null_values(units, lambda c: [unless_below(c, floor)], resampler, draw)
    else:
        each = [part.of for part in statistics]
        values = null_values(units, lambda c: [of(c) for of in each], resampler, draw)
    return values[0], np.column_stack([ranks(column) for column in values.T])


def ranks(values: Vector) -> NDArray[np.int64]:
    """Return for each value how many values, itself included, are at least as large.

    Values that differ by rounding count as equal, which can only raise a p-value.
    """
    return values.size - np.searchsorted(np.sort(values), _floor(values), side="left")


def _floor(values: Vector) -> Vector:
    """Return what a value must reach to count as equal."""
    finite = np.where(np.isfinite(values), values, 0.0)
    return np.asarray(values - _ROUNDING * (np.abs(finite) + 1e-3))
