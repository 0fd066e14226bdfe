"""Sorted measures by the clock, in multiples of ``np.sort``, with two cores and with all."""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product

import numpy as np
from tqdm import tqdm

from benchmarks.families import FAMILIES
from benchmarks.measures import MEASURES
from benchmarks.tables import Table, number, size_name, verdict
from benchmarks.timing import Effort, best_of, side_by_side

SIZES = (10**6, 10**7, 10**8)  # the last needs 16 GB of memory
NAMES = (
    "smooth_ce", "kernel_ce:laplace", "random_interval_ce", "surrogate_interval_ce",
    "lower_distance",
)  # fmt: skip
FAMILY_NAMES = ("beta=3", "beta=1", "calibrated")
EFFORT = Effort(seconds=1.0, fewest=3, most=30)
_FEW = 2  # cores
_SMALL, _LARGE = 10**6, 10**8
_TARGET, _LARGE_TARGET = 3.0, 0.3
_MANY = 16  # cores from which on the second is judged


def cores_table(sizes: Sequence[int], effort: Effort) -> Table:
    """Lay out the ratios: a row for each measure, family and size."""
    every = sorted(os.sched_getaffinity(0))
    counts = sorted({min(_FEW, len(every)), len(every)})
    ratios: dict[tuple[str, str, int], dict[int, float]] = defaultdict(dict)
    sorting: dict[int, float] = {}
    try:
        for n, family in product(sizes, FAMILY_NAMES):
            sample = FAMILIES[family].make(n)
            shown = f"{family}, {size_name(n)}"
            for name in tqdm(NAMES, shown, file=sys.stderr, disable=not sys.stderr.isatty()):
                for count in counts:
                    os.sched_setaffinity(0, every[:count])
                    found = side_by_side(
                        partial(MEASURES[name], sample), partial(np.sort, sample.y_prob), effort
                    )
                    ratios[name, family, n][count] = found.ratio
                    sorting[n] = min(found.reference, sorting.get(n, np.inf))
    finally:
        os.sched_setaffinity(0, every)
    rows = []
    for name, family, n in product(NAMES, FAMILY_NAMES, sizes):
        ratio = ratios[name, family, n]
        shown_ratios = [number(ratio[count]) for count in counts]
        rows.append([name, family, size_name(n), *shown_ratios, *_judged(name, n, ratio)])
    listed = ", ".join(f"{number(1000 * t)} ms at {size_name(n)}" for n, t in sorting.items())
    note = (
        "By the clock, from raw unsorted arrays to the number, in multiples of np.sort(y_prob) of "
        f"the same array, which uses one core; the two run in turn, {best_of(effort)}. np.sort "
        f"itself, on its fastest family: {listed}."
    )
    header = ["measure", "family", "rows", *(f"{count} cores" for count in counts)]
    return Table("By the clock", [*header, "target", "verdict"], rows, note)


def _judged(name: str, n: int, ratio: Mapping[int, float]) -> tuple[str, str]:
    """Return what is wanted at a size, and whether it was met."""
    few, most = min(ratio), max(ratio)
    if _SMALL <= n < _LARGE and few == _FEW and name != "surrogate_interval_ce":
        return f"{_TARGET:g} with two", verdict(ratio[few] <= _TARGET)
    if n >= _LARGE and most >= _MANY and name != "smooth_ce":
        return f"{_LARGE_TARGET:g} with sixteen", verdict(ratio[most] <= _LARGE_TARGET)
    return "", ""
