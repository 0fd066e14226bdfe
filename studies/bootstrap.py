"""The percentile bootstrap, as most people would do it: what the intervals are compared with."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from caldist import Joint
from studies.laws import Sample
from studies.measures import STUDIED

__all__ = ["percentile_bootstrap"]

Vector = NDArray[np.float64]


def percentile_bootstrap(
    sample: Sample,
    measure: str,
    levels: Sequence[float],
    n_resamples: int,
    rng: np.random.Generator,
) -> list[tuple[float, float]]:
    """Return an interval for each level: quantiles of the measure over resampled rows or clusters.

    With a second model it is the difference of the two on the same resampled rows.
    """
    value = STUDIED[measure]
    joints = [_resampled(sample.y_true, sample.y_prob)]
    if sample.y_other is not None:
        joints.append(_resampled(sample.y_true, sample.y_other))
    unit = np.arange(sample.y_true.size) if sample.clusters is None else sample.clusters
    n_units = int(unit[-1]) + 1
    draws = np.empty(n_resamples)
    for at in range(n_resamples):
        count = np.bincount(rng.integers(0, n_units, n_units), minlength=n_units)[unit]
        values = [value(joint(count)) for joint in joints]
        draws[at] = values[0] - sum(values[1:])
    return [
        (float(low), float(high))
        for low, high in (np.quantile(draws, ((1 - p) / 2, (1 + p) / 2)) for p in levels)
    ]


def _resampled(y_true: NDArray[np.int64], y_prob: Vector) -> Callable[[NDArray[np.int64]], Joint]:
    """Return the map from the number of times each row is drawn to a joint, without a sort."""
    support, place = np.unique(y_prob, return_inverse=True)

    def joint(count: NDArray[np.int64]) -> Joint:
        mass1 = np.bincount(place, count * y_true, support.size)
        mass0 = np.bincount(place, count * (1 - y_true), support.size)
        drawn = mass0 + mass1 > 0
        return Joint(support[drawn], mass0[drawn], mass1[drawn])

    return joint
