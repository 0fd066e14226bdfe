"""Certified effects of rounding against the rows that were rounded."""

from __future__ import annotations

import numpy as np

import caldist
from caldist import Joint
from caldist.measures.registry import all_measures
from fuzz.rows import Instance, draw_rows

BOUNDED = tuple(
    name for name, measure in all_measures().items() if measure.facts.rounding is not None
)
ROOM = 1e-13


def draw(rng: np.random.Generator) -> Instance:
    """Return rows, a grid and a measure."""
    return draw_rows(rng, 40) | {
        "bits": int(rng.integers(1, 17)),
        "measure": str(rng.choice(BOUNDED)),
    }


def check(instance: Instance) -> None:
    """Compare the value of the rows with the ends that their summary gives."""
    exact = Joint.from_arrays(
        *(instance[name] for name in ("y_true", "y_prob")), sample_weight=instance["sample_weight"]
    )
    measure = all_measures()[instance["measure"]]
    known = caldist.evaluate(exact, measures=[measure])[measure.name]
    bounds = caldist.evaluate(exact.coarsen(instance["bits"]), measures=[measure])[measure.name]
    found = f"{bounds.lower!r} to {bounds.upper!r}, but {known.lower!r} to {known.upper!r}"
    assert 0 <= bounds.lower <= bounds.value <= bounds.upper, found
    assert bounds.lower - ROOM <= known.upper, found
    assert known.lower <= bounds.upper + ROOM, found
