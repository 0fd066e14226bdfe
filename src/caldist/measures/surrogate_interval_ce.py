"""The surrogate interval calibration error, SintCE."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from caldist._util.types import Vector
from caldist.data import validate
from caldist.data.joint import Joint
from caldist.data.residuals import Residuals
from caldist.data.rows import Rows
from caldist.measures import _passes, _second_order
from caldist.measures._rounding import within_cells_of
from caldist.measures.base import NOT_A_NORM, Entries, measure
from caldist.measures.lower_distance import lower_distance
from caldist.measures.random_interval_ce import random_interval_ce

if TYPE_CHECKING:
    from caldist.inference.limits import Limits


_PRECISION = 0.01
_FINEST_PRECISION = 1e-6  # with which the bins of one shift still fit into memory
_FINEST = 60  # 2^-60 is below the spacing of doubles near any prediction that matters
_CONFIDENCE = 0.95  # with which the default number of shifts reaches the precision
_CHUNK = 1 << 20  # bin edges looked up at a time


def _rounding_bounds(joint: Joint, _value: float, **options: Any) -> tuple[float, float] | None:
    """Bound SintCE by bounding the RintCE(2^-k) in its infimum.

    RintCE(2^-k) does not decrease with k. So a lower bound at K also holds for all finer widths,
    and SintCE is at least the least of it and of the bounds on RintCE(2^-k) + 2^-k up to K.
    """
    if options.get("method", "exact") != "exact":
        return None
    within = within_cells_of(joint)
    floor = lower = 0.0
    coarser = math.inf
    sums = {}
    for k in range(60 if joint.grid is None else joint.grid.bits + 1):
        width = 2.0**-k
        least, most = (
            _random_interval(joint, width)
            if within is None
            else _second_order.dyadic_interval(within, width)
        )
        floor = max(floor, least)
        coarser = min(coarser, floor + width)
        lower = max(lower, min(coarser, floor))
        sums[width] = most + width
        if floor >= coarser or most - least >= max(floor, width):
            break
    if within is None:
        return lower, min(sums.values())
    # What cells leave open is worked out for the few widths that can be the best.
    upper = math.inf
    for width in sorted(sums, key=lambda width: sums[width]):
        if sums[width] >= upper:
            break
        upper = min(upper, _random_interval(joint, width)[1] + width)
    return lower, upper


def _random_interval(joint: Joint, width: float) -> tuple[float, float]:
    at_width = random_interval_ce.using(width=width)
    ends = at_width.rounding(joint, at_width(joint))
    assert ends is not None  # noqa: S101 -- it is bounded at every width
    return ends


def _interval(limits: Limits, joint: Joint, **options: Any) -> tuple[float, float, float]:
    dyadic = limits.dyadic(joint)
    value, _, _ = surrogate_interval_ce.using(**options).enclosed(joint)
    if limits.method == "cross_fit":  # which bounds ldCE, and that is below it
        _, lower, _ = lower_distance.interval(limits, joint)
    else:
        lower = dyadic.lower(cost=1.0)
    return value, lower, dyadic.upper(cost=1.0)


def _properties() -> Entries:
    from caldist.paper import claims

    yield claims.Entry(
        claims.of_joints("surrogate_interval_ce", surrogate_interval_ce),
        claims.modulus(
            "From RintCE(ε) being (1 + 2/ε)-Lipschitz and monotone over dyadic ε "
            "(section 6): it moves by at most 6√E|f - g|.",
            6,
            0.5,
        ),
        claims.complete("Calibrated predictions have error 0 in bins of any width, however small."),
        claims.sound("From SintCE ≥ udCE."),
        claims.above("1/2", "SintCE ≤ 6√ldCE (section 6).", 6),
        claims.below("1", "SintCE ≥ intCE ≥ udCE ≥ dCE (section 6).", 1),
        cost=claims.cost("O(n log n)", "A sort and a pass for each of about six dyadic widths."),
    )


def _encloses(joint: Joint, **options: Any) -> tuple[float, float | None, float | None]:
    """Return the value, which is certain itself unless it was estimated."""
    value = surrogate_interval_ce(joint, **options)
    certain = value if options.get("method", "exact") == "exact" else None
    return value, certain, certain


@measure(
    symbol="SintCE",
    summary="best dyadic width plus its error over random shifts",
    position=60,
    shown_in=("evaluate",),
    encloses=_encloses,
    above_distance=True,
    rounding=_rounding_bounds,
    interval=_interval,
    no_comparison=NOT_A_NORM,
    properties=_properties,
)
def surrogate_interval_ce(
    y_true: ArrayLike | Joint,
    y_prob: ArrayLike | None = None,
    *,
    method: Literal["exact", "monte_carlo"] = "exact",
    precision: float | None = None,
    n_shifts: int | None = None,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    rng: validate.Rng = 0,
) -> float:
    r"""Return the surrogate interval calibration error.

    .. math:: \mathrm{SintCE} = \inf_{k \ge 0} \mathrm{RintCE}(2^{-k}) + 2^{-k}

    **What it means.** An upper bound on the distance to calibration, and never more than six times
    the square root of the lower distance.

    **What it estimates.** The population's value, but with an upward bias that is large for small
    samples: about 0.12 at n = 400 where the population has 0.

    **Cost.** O(n log n): a sort, and a pass for each of about six k. ``"monte_carlo"`` is the
    paper's estimator, slower and kept for comparison.

    Parameters
    ----------
    y_true : array-like of 0 and 1, or Joint
        A joint stands for labels, predictions and weights at once.
    y_prob : array-like in [0, 1]
        The predicted probability of label 1.
    method : "exact" or "monte_carlo"
        The infimum over all k with the exact expectation over the shift; or the minimum over
        k ≤ k*, where precision/4 < 2^-k* ≤ precision/2, of averages over random shifts.
    precision : float, optional
        Only for "monte_carlo": how close to the exact value it shall come; by default 0.01.
    n_shifts : int, optional
        Only for "monte_carlo": random shifts per k. By default as many as make the result correct
        to ``precision`` with probability 0.95, by Hoeffding's inequality.
    sample_weight : array-like, optional
    pos_label : optional
        The value of ``y_true`` that counts as label 1, where labels are not 0 and 1.
    rng : int, numpy.random.Generator or None
        Only for "monte_carlo". The same rows give the same answer; None draws a fresh seed.

    Examples
    --------
    >>> import caldist
    >>> caldist.surrogate_interval_ce([0, 1, 1], [0.0, 1.0, 1.0])
    0.0
    >>> caldist.surrogate_interval_ce([0, 1, 0, 1], [0.25, 0.5, 0.5, 0.75])
    0.125
    """
    validate.check_choice("method", method, ("exact", "monte_carlo"))
    if precision is not None:
        precision = validate.check_fraction("precision", precision)
        if precision < _FINEST_PRECISION:
            message = f"precision is {precision!r}; it must be at least {_FINEST_PRECISION}."
            raise ValueError(message)
        validate.check_goes_with("precision", precision, "method", method, ("monte_carlo",))
    if n_shifts is not None:
        n_shifts = validate.check_count("n_shifts", n_shifts)
        validate.check_goes_with("n_shifts", n_shifts, "method", method, ("monte_carlo",))
    generator = validate.generator(rng)
    rows = Rows.of(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
    if method == "exact":
        return _exact(rows.residuals)
    return _monte_carlo(
        rows.residuals, _PRECISION if precision is None else precision, n_shifts, generator
    )


def _exact(residuals: Residuals) -> float:
    """Return the least of RintCE(2^-k) + 2^-k, with few of them computed.

    RintCE does not decrease with k. So none of those from ``first`` to ``last`` is below what is
    known of the one before the first, and the last width.
    """
    sums = residuals.sums()
    best = residuals.absolute()  # ECE, the limit of fine bins
    # At first where noise, about the root of bins over rows, is as large as the width.
    guess = round(math.log2(residuals.mass.size) / 3)
    left = [(abs(float(sums[-1])), 0, _FINEST, guess)]  # the error of one bin is the least
    while left:
        error, first, last, step = left.pop()
        while first <= last and error + 2.0**-first >= best:
            first += 1
        if first > last or error + 2.0**-last >= best:
            continue
        middle = min(first + step, last) if last == _FINEST else (first + last) // 2
        found = _passes.random_interval_ce(residuals.prediction, sums, 2.0**-middle)
        best = min(best, found + 2.0**-middle)
        left += [(error, first, middle - 1, 0), (found, middle + 1, last, 1)]
    return best


def _monte_carlo(
    residuals: Residuals, precision: float, n_shifts: int | None, rng: np.random.Generator
) -> float:
    finest = math.ceil(math.log2(2 / precision))
    sums = residuals.sums()
    if n_shifts is None:
        # Each average lies in [0, ECE] and has to come within precision/2 of its mean.
        spread = residuals.absolute() / (precision / 2)  # of ECE
        tails = 2 * (finest + 1) / (1 - _CONFIDENCE)
        n_shifts = max(1, math.ceil(math.log(tails) * spread**2 / 2))
    return min(
        _mean_over_shifts(residuals.prediction, sums, 2.0**-k, n_shifts, rng) + 2.0**-k
        for k in range(finest + 1)
    )


def _mean_over_shifts(
    prediction: Vector, sums: Vector, width: float, n_shifts: int, rng: np.random.Generator
) -> float:
    """Average the binned ECE over random shifts of bins of one width."""
    start = np.arange(-1, math.ceil(1 / width) + 2) * width  # beyond 1 for every shift
    rows = max(1, _CHUNK // start.size)
    total = 0.0
    for done in range(0, n_shifts, rows):
        shift = rng.uniform(0, width, size=min(rows, n_shifts - done))
        first = np.searchsorted(prediction, shift[:, None] + start)
        total += float(np.abs(np.diff(sums[first], axis=1)).sum())
    return total / n_shifts
