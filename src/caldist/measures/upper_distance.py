"""The upper distance to calibration, udCE."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caldist._util.products import dot
from caldist._util.progress import bounds_bar
from caldist._util.threads import thread_count
from caldist._util.types import Integers, Vector
from caldist.certificates import UpperCertificate
from caldist.data import validate
from caldist.data.joint import Joint
from caldist.data.rows import Rows
from caldist.errors import answering
from caldist.kernels.loader import partition
from caldist.measures import _grouping_search, _partitions
from caldist.measures.base import NO_POPULATION, SMEARED, measure
from caldist.measures.interval_ce import interval_groups_below
from caldist.measures.lower_distance import TOLERANCE, certify_lower, lower_distance

_LOCAL_SEARCH = 300  # predictions up to which single points are moved between groups
_ROUNDS = 20
_ALONE = 128  # and up to which the search also begins with every point alone
_ROUNDING = 1 + 1e-9


def certify_upper(
    joint: Joint, *, tol: float = TOLERANCE, progress: bool = False
) -> UpperCertificate:
    """Enclose udCE of a joint distribution between ldCE and the cost of a map."""
    group, recalibrated, exact = best_map(joint, progress=progress)
    value = _cost(joint, group, recalibrated)
    below = certify_lower(joint, tol=tol, progress=progress)
    return UpperCertificate.of(
        joint,
        value=value,
        lower=min(below.lower, value),
        upper=value,
        group=group,
        recalibrated=recalibrated,
        node=below.node,
        potential0=below.potential0,
        potential1=below.potential1,
        exact=exact,
    )


def _rounding_bounds(joint: Joint, value: float, **_: object) -> tuple[float, float] | None:
    """Bound udCE: by ldCE below, and above because rounding and then a map is a map too."""
    below = lower_distance.rounding(joint, certify_lower(joint, tol=TOLERANCE).lower)
    assert below is not None  # noqa: S101 -- it is bounded on every joint
    return min(below[0], value), value + joint.radius


def _encloses(joint: Joint, *, progress: bool = False) -> tuple[float, float, float]:
    """Return the value with bounds: twice itself where no map is better, else ldCE below it."""
    group, recalibrated, exact = best_map(joint, progress=progress)
    value = _cost(joint, group, recalibrated)
    lower = value if exact else min(value, certify_lower(joint, tol=TOLERANCE).lower)
    return value, lower, value


@measure(
    symbol="udCE",
    summary="least change of the predictions by a map; beyond 17 of them a bound from above",
    position=40,
    shown_in=("evaluate", "measure", "report"),
    encloses=_encloses,
    above_distance=True,
    rounding=_rounding_bounds,
    flips=False,  # where it is a bound, the search may end elsewhere
    no_interval=SMEARED,
    no_comparison=NO_POPULATION,
    certify=certify_upper,
)
def upper_distance(
    y_true: ArrayLike | Joint,
    y_prob: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    progress: bool = False,
) -> float:
    r"""Return the upper distance to calibration, or the best upper bound found.

    .. math:: \mathrm{udCE} = \min_\kappa E\,|v - \kappa(v)|

    over all maps κ of the predictions such that (κ(v), y) is perfectly calibrated.

    **What it means.** How much the predictions have to be changed to become calibrated when only
    the predictions themselves may be looked at: the most that the distance to calibration can be,
    given predictions and labels. Finding it is NP-hard in general. With up to 17 distinct
    predictions (12 where kernels are not compiled) the value is exact. Beyond, it is the cost of
    the best map found, so an upper bound: the best grouping of neighbouring predictions, up to 300
    of them improved by moving single ones. Always at least the lower distance and at most the
    interval calibration error. The certificate of :func:`caldist.certify` says whether the value is
    exact.

    **What it estimates.** The sample only. The value on a sample does not estimate the
    population's: where predictions hardly repeat, each label looks certain.

    **Cost.** Exact: some 0.1 s at most. Beyond: a sort and a multi-level search, a few sorts.

    Parameters
    ----------
    y_true : array-like of 0 and 1, or Joint
        A joint stands for labels, predictions and weights at once.
    y_prob : array-like in [0, 1]
        The predicted probability of label 1.
    sample_weight : array-like, optional
    pos_label : optional
        The value of ``y_true`` that counts as label 1, where labels are not 0 and 1.
    progress : bool
        Show a progress bar after two seconds.

    See Also
    --------
    nearest_calibrated : the predictions κ(v) themselves.

    Examples
    --------
    >>> import caldist
    >>> caldist.upper_distance([0, 1, 0, 1], [0.25, 0.5, 0.5, 0.75])
    0.125
    """
    progress = validate.check_flag("progress", progress)
    joint = Rows.of(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label).joint
    group, recalibrated, _ = best_map(joint, progress=progress)
    return _cost(joint, group, recalibrated)


@answering
def nearest_calibrated(
    y_true: ArrayLike | Joint,
    y_prob: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> Vector:
    """Return the calibrated predictions κ(v) at the upper distance from the given ones.

    Row for row in the order of the input, or one for each of ``joint.prediction``. On these rows
    they are perfectly calibrated, and their mean distance from ``y_prob`` is
    :func:`upper_distance`. They are fitted to these labels: to recalibrate new predictions use
    :func:`caldist.recalibrate`.

    Parameters
    ----------
    y_true : array-like of 0 and 1, or Joint
        A joint stands for labels, predictions and weights at once.
    y_prob : array-like in [0, 1]
        The predicted probability of label 1.
    sample_weight : array-like, optional
    pos_label : optional
        The value of ``y_true`` that counts as label 1, where labels are not 0 and 1.

    Examples
    --------
    >>> import caldist
    >>> caldist.measures.nearest_calibrated([0, 1, 0, 1], [0.25, 0.5, 0.5, 0.75])
    array([0.5, 0.5, 0.5, 0.5])
    """
    rows = Rows.of(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
    joint = rows.joint
    group, recalibrated, _ = best_map(joint)
    if rows.is_summary:
        return recalibrated[group]
    # Rows without weight are not in the joint: they follow the nearest prediction that is.
    return recalibrated[group[nearest_known(joint.prediction, rows.prediction)]]


def best_map(joint: Joint, *, progress: bool = False) -> tuple[Integers, Vector, bool]:
    """Return the group of each prediction, each group's frequency of label 1, and if exact."""
    mass0, mass1 = joint.normalized()
    mass = mass0 + mass1
    if mass.size <= _partitions.DYNAMIC:
        group = _partitions.best_groups(joint.prediction, mass, mass1)
        return group, _means(joint, group), True
    group, interval = _contiguous(joint, mass0, mass1, progress=progress)
    if interval is not None:
        candidates = (group, _numbers(interval, group.size))
        group = min(candidates, key=lambda group: _cost(joint, group, _means(joint, group)))
    if mass.size <= _LOCAL_SEARCH:
        starts = [group, *_starts(joint)]
        found = [_local_search(joint.prediction, mass, mass1, start) for start in starts]
        group = min(found, key=lambda group: _cost(joint, group, _means(joint, group)))
    return group, _means(joint, group), False


def _contiguous(
    joint: Joint, mass0: Vector, mass1: Vector, *, progress: bool
) -> tuple[Integers, Integers | None]:
    """Return the best contiguous groups found, and the starts of those behind intCE if needed.

    The partition behind intCE keeps the result from ever exceeding intCE. It is not needed where
    intCE is larger than the value, by more than rounding can account for. What the search has after
    its first level is enough to see that, so a second core, if it may be used, looks while the
    search goes on.
    """
    if mass0.size <= _grouping_search.ALL_CUTS:  # the search has no levels: nothing to do meanwhile
        value, first = _grouping_search.search(joint.prediction, mass0, mass1)
        return _numbers(first, mass0.size), interval_groups_below(joint, value * _ROUNDING)

    from concurrent.futures import ThreadPoolExecutor  # slow to import

    with (
        ThreadPoolExecutor(max_workers=1) as pool,
        bounds_bar("upper distance", show=progress) as report,
    ):
        interval: list[Callable[[], Integers | None]] = []

        def level_done(lower: float, upper: float) -> None:
            if not interval:
                look = partial(interval_groups_below, joint, upper * _ROUNDING)
                interval.append(look if thread_count() == 1 else pool.submit(look).result)
            if report is not None:
                report(lower, upper)

        _, first = _grouping_search.search(joint.prediction, mass0, mass1, level_done)
        return _numbers(first, mass0.size), interval[0]()


def nearest_known(known: Vector, prediction: Vector) -> NDArray[np.int64]:
    """Return which of the increasing known predictions is nearest, the lower one of two."""
    right = np.searchsorted(known, prediction).clip(max=known.size - 1)
    left = (right - 1).clip(min=0)
    # Left + right against twice the prediction, exactly: the rounded midpoint of neighbouring
    # floats is one of them, which would take a training prediction to the wrong side.
    total = known[left] + known[right]
    lost = known[left] - (total - known[right])  # what rounding took from the sum
    twice = 2 * prediction
    return np.where((total < twice) | ((total == twice) & (lost < 0)), right, left)


def _numbers(first: Integers, size: int) -> Integers:
    """Give the points between one group's start and the next the same number."""
    starts = np.zeros(size, dtype=np.int64)
    starts[first[1:]] = 1
    return np.cumsum(starts)


def _means(joint: Joint, group: Integers) -> Vector:
    """Return the frequency of label 1 in each group."""
    return np.bincount(group, joint.mass1) / np.bincount(group, joint.mass0 + joint.mass1)


def _cost(joint: Joint, group: Integers, recalibrated: Vector) -> float:
    mass = (joint.mass0 + joint.mass1) / joint.total
    return dot(mass, np.abs(joint.prediction - recalibrated[group]))


def _starts(joint: Joint) -> Iterator[Integers]:
    """Give groups that are far from each other, since a local search ends near where it begins."""
    size = joint.prediction.size
    interval = interval_groups_below(joint, math.inf)
    if interval is not None:
        yield _numbers(interval, size)
    for count in (5, 8, 13):
        yield np.arange(size) * count // size
    if size <= _ALONE:
        yield np.arange(size)


def _local_search(prediction: Vector, mass: Vector, ones: Vector, group: Integers) -> Integers:
    group = group.copy()
    partition.improve(prediction, mass, ones, group, int(group.max()) + 2, _ROUNDS)
    return np.unique(group, return_inverse=True)[1].astype(np.int64)  # some may be empty now
