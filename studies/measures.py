"""The measures whose intervals are studied: all that have one."""

from __future__ import annotations

from typing import Any

from caldist.measures.base import Measure
from caldist.measures.registry import all_measures

__all__ = ["BRACKET", "COMPARED", "CROSS_FIT", "DIFFERENCES", "STUDIED", "TOGETHER"]

BRACKET = "distance"  # not a function: limits of the lower and the upper distance together

STUDIED: dict[str, Measure[Any]] = {
    name: measure.shown for name, measure in all_measures().items() if measure.has_interval
}
COMPARED = tuple(name for name, measure in STUDIED.items() if measure.is_comparable)

CROSS_FIT = ", cross_fit"  # what follows the name of a measure where no replicates are used

DIFFERENCES = (*COMPARED, *(name + CROSS_FIT for name in COMPARED if name != "brier_score"))

# Limits of one cell that are made from the same duals, and so cost little beside each other.
TOGETHER: dict[str, tuple[str, ...]] = {
    name: (name, name + CROSS_FIT) for name in COMPARED if name != "brier_score"
} | {"lower_distance": ("lower_distance", "lower_distance" + CROSS_FIT, "interval_ce", BRACKET)}
