"""Which recipe makes the interval of a measure: it follows from what the measure is."""

from __future__ import annotations

from typing import Any

from caldist.data.joint import Joint
from caldist.errors import InvalidInput
from caldist.inference.limits import Limits
from caldist.measures.base import Measure
from caldist.measures.lower_distance import lower_distance

ValueAndEnds = tuple[float, float, float]


def limits_of(measure: Measure[Any], limits: Limits, joint: Joint) -> ValueAndEnds:
    """Return the value of a measure and both limits, of the rows behind a joint."""
    facts = measure.facts
    if facts.interval is not None:
        return _RECIPES[facts.interval](measure, limits, joint)
    if facts.norm is not None:
        return moved_outwards(measure, joint, *limits.of_norm(measure))
    assert facts.loss is not None  # noqa: S101 -- only asked where it has an interval
    value, half = measure.of(joint), limits.of_mean(facts.loss)
    return moved_outwards(measure, joint, value, value - half, value + half)


def _of_distance(measure: Measure[Any], limits: Limits, joint: Joint) -> ValueAndEnds:
    """Use that the distance moves by no more than noise does."""
    value = measure.of(joint)
    upper = limits.distance_upper(joint, value + measure.option("tol"))
    return moved_outwards(measure, joint, value, limits.distance_lower(value), upper)


def _of_partitions(measure: Measure[Any], limits: Limits, joint: Joint) -> ValueAndEnds:
    """Use the lower limit of ldCE, which is below, and the upper one of SintCE, which is above."""
    _, lower, _ = limits_of(lower_distance, limits, joint)
    return measure.of(joint), lower, limits.dyadic(joint).upper(cost=1.0)


def _of_dyadic_widths(measure: Measure[Any], limits: Limits, joint: Joint) -> ValueAndEnds:
    """Use the limits of RintCE at every dyadic width."""
    dyadic = limits.dyadic(joint)
    value, _, _ = measure.enclosed(joint)
    if limits.method == "cross_fit":  # which bounds ldCE, and that is below it
        _, lower, _ = limits_of(lower_distance, limits, joint)
    else:
        lower = dyadic.lower(cost=1.0)
    return value, lower, dyadic.upper(cost=1.0)


_RECIPES = {
    "distance": _of_distance,
    "partitions": _of_partitions,
    "dyadic widths": _of_dyadic_widths,
}


def moved_outwards(
    measure: Measure[Any], joint: Joint, value: float, lower: float, upper: float
) -> ValueAndEnds:
    """Return a value and limits for the rows before they were rounded."""
    ends = measure.rounding(joint, value)
    if ends is None:
        raise InvalidInput(
            argument="joint",
            reason=f"has rounded predictions, and what that does to {measure} is not bounded",
            remedy="Use measure='smooth_ce', or a joint of exact predictions.",
        )
    least, most = ends
    # The value itself may lie outside of what is certain; caldist.evaluate moves it likewise.
    return min(max(value, least), most), lower - value + least, upper - value + most
