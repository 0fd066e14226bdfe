"""The measures whose intervals are studied: all that have one."""

from __future__ import annotations

from typing import Any

from caldist.measures._measure import Measure
from caldist.measures.registry import all_measures

__all__ = ["BRACKET", "COMPARED", "STUDIED"]

BRACKET = "distance_bracket"  # not a measure: bounds on the lower and the upper distance together

STUDIED: dict[str, Measure[Any]] = {
    name: measure.shown for name, measure in all_measures().items() if measure.has_interval
}
COMPARED = tuple(name for name, measure in STUDIED.items() if measure.is_comparable)
