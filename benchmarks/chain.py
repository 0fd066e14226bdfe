"""The kernel behind the post-processing gap: ``python -m benchmarks.chain``, from the root."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial

import numpy as np

import caldist
from benchmarks.families import FAMILIES, Sample
from benchmarks.tables import Table, number, size_name, verdict
from benchmarks.timing import THOROUGH, Effort, best_of, side_by_side
from caldist._util.types import Vector
from caldist.kernels.loader import chain
from caldist.measures.post_processing_gap import MAX_SLOPE

SIZES = (10**4, 10**5, 10**6)
_JUDGED = 10**6

# The most that the kernel may cost where predictions are spread, and where many lie close together.
_SPREAD, _CLOSE = 2.5, 10.0
_TARGETS = {
    "beta=0.3": _SPREAD,
    "beta=1": _SPREAD,
    "beta=3": _SPREAD,
    "calibrated": _SPREAD,
    "one-sided": _SPREAD,
    "oscillating": _SPREAD,
    "clusters": _SPREAD,
    "tied": _SPREAD,
    "narrow": _CLOSE,
    "sawtooth": _CLOSE,
    "zigzag": _CLOSE,
}


def _chain(sample: Sample) -> tuple[Vector, ...]:
    """Return what the measure hands to the kernel."""
    joint = caldist.Joint.from_arrays(sample.y_true, sample.y_prob)
    mass = joint.mass0 + joint.mass1
    step = np.diff(joint.prediction)
    return mass, joint.mass1 / mass, np.zeros_like(step), MAX_SLOPE * step, np.empty_like(mass)


def chain_table(sizes: Sequence[int], effort: Effort) -> Table:
    """Lay out the ratios: a row for each family, the kernel and the measure for each size."""
    rows = []
    for family, target in _TARGETS.items():
        cells, judgement = [], ""
        for n in sizes:
            sample = FAMILIES[family].make(n)
            argsort = partial(np.argsort, sample.y_prob)
            alone = side_by_side(partial(chain.fit, *_chain(sample)), argsort, effort)
            measure = partial(caldist.measures.post_processing_gap, sample.y_true, sample.y_prob)
            cells += [number(alone.ratio), number(side_by_side(measure, argsort, effort).ratio)]
            if n == _JUDGED:
                judgement = verdict(alone.ratio <= target)
        rows.append([family, *cells, f"{target:g} at {size_name(_JUDGED)}", judgement])
    columns = [f"{size_name(n)}{kind}" for n in sizes for kind in ("", ", measure")]
    note = (
        "The kernel alone, on sorted predictions, and post_processing_gap from raw unsorted "
        "arrays, in multiples of np.argsort(y_prob) of the same array; each runs in turn with it, "
        f"{best_of(effort)}. The target is for the kernel."
    )
    title = "Chains with bounded steps, in multiples of np.argsort"
    return Table(title, ["family", *columns, "target", "verdict"], rows, note)


def main() -> int:
    """Print the table."""
    print(chain_table(SIZES, THOROUGH).as_markdown(), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
