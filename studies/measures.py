"""The measures whose intervals are studied, each with its options and its value on a joint."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from caldist import Joint
from caldist.measures.registry import MEASURES
from caldist.measures.weighted_ce import weighted_ce_of
from caldist.weights import polynomials

__all__ = ["BRACKET", "COMPARED", "STUDIED", "Studied"]

BRACKET = "distance_bracket"  # not a measure: bounds on the lower and the upper distance together


@dataclass(frozen=True)
class Studied:
    """A measure: its value on a joint, and the options that intervals need to be told."""

    value: Callable[[Joint], float]
    options: dict[str, Any] = field(default_factory=dict)


_FUNCTIONS = polynomials(2)

STUDIED: dict[str, Studied] = {
    **{
        name: Studied(MEASURES[name].of_joint)
        for name in ("smooth_ce", "kernel_ce", "random_interval_ce")
    },
    "weighted_ce": Studied(
        partial(weighted_ce_of, functions=_FUNCTIONS), {"functions": _FUNCTIONS}
    ),
    **{
        name: Studied(MEASURES[name].of_joint)
        for name in ("surrogate_interval_ce", "lower_distance", "interval_ce", "brier_score")
    },
}
COMPARED = ("smooth_ce", "kernel_ce", "random_interval_ce", "weighted_ce", "brier_score")
