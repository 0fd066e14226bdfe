"""The population's values: each measure on a fine discretisation of the law.

A law is replaced by its values at the midpoints of ``ATOMS`` equal pieces of u: the midpoint rule,
of second order. :func:`truth_error` measures what is left by doubling the atoms: at most 2e-7 in
any law here. ``SLACK`` allows for that and for the tolerance of the lower distance.
"""

from __future__ import annotations

from functools import cache

from caldist import Joint, upper_distance
from studies.laws import ATOMS, LAWS, PAIRS
from studies.measures import STUDIED

__all__ = ["SLACK", "bracket_truth", "difference_truth", "truth", "truth_error"]

SLACK = 2e-6


@cache
def _population(law: str, atoms: int) -> Joint:
    return LAWS[law].population(atoms)


@cache
def truth(law: str, measure: str, atoms: int = ATOMS) -> float:
    """Return the population's value of a measure."""
    return STUDIED[measure](_population(law, atoms))


def truth_error(law: str, measure: str) -> float:
    """Return by how much the value changes when the atoms are doubled."""
    return abs(truth(law, measure) - truth(law, measure, 2 * ATOMS))


@cache
def difference_truth(pair: str, measure: str, atoms: int = ATOMS) -> float:
    """Return the population's difference of a measure between two models."""
    first, second = PAIRS[pair].populations(atoms)
    return STUDIED[measure](first) - STUDIED[measure](second)


@cache
def bracket_truth(law: str) -> tuple[float, float]:
    """Return the population's lower distance and an upper bound on its upper distance.

    The bound is the cost of an explicit map, so a bracket that reaches it holds the upper distance.
    """
    return truth(law, "lower_distance"), upper_distance(_population(law, ATOMS))
