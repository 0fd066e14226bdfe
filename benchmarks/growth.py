"""How the cost of each measure grows with the rows, in multiples of ``np.sort``."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from tqdm import tqdm

from benchmarks.families import FAMILIES
from benchmarks.measures import Measure
from benchmarks.tables import Table, number, size_name
from benchmarks.timing import Effort, best_of, processor_time

FAMILY = "beta=3"
SIZES = (10**4, 10**5, 10**6, 10**7, 10**8)  # the last needs 16 GB of memory
EFFORT = Effort(seconds=0.6, fewest=2, most=100)
_PATIENCE = 4.0  # seconds of a call, after which ten times the rows are not tried

Ratios = dict[str, dict[int, float]]  # by measure and number of rows


def measure_growth(
    measures: Sequence[Measure], sizes: Sequence[int], effort: Effort
) -> tuple[Ratios, dict[int, float]]:
    """Return the ratio of each measure to np.sort at each size, and the time of np.sort."""
    ratios: Ratios = {measure.name: {} for measure in measures}
    sorting: dict[int, float] = {}
    left = list(measures)
    for n in sorted(sizes):
        sample = FAMILIES[FAMILY].make(n)
        sorting[n] = processor_time(partial(np.sort, sample.y_prob), effort)
        quick = []
        for measure in tqdm(left, size_name(n), file=sys.stderr, disable=not sys.stderr.isatty()):
            seconds = processor_time(partial(measure, sample), effort)
            ratios[measure.name][n] = seconds / sorting[n]
            if seconds <= _PATIENCE:
                quick.append(measure)
        left = quick
    return ratios, sorting


def growth_table(ratios: Ratios, sorting: Mapping[int, float], effort: Effort) -> Table:
    """Lay out the ratios: a row for each measure, a column for each size."""
    sizes = sorted(sorting)
    rows = []
    for name, found in ratios.items():
        shown = [number(found[n]) if n in found else "–" for n in sizes]
        last = max(found)
        growth = number(found[last] / found[sizes[0]]) if last > sizes[0] else ""
        rows.append([name, *shown, growth])
    times = ", ".join(f"{number(1000 * t)} ms at {size_name(n)}" for n, t in sorting.items())
    note = (
        "Processor time of all threads from raw unsorted arrays to the number, validation "
        "included, in multiples of np.sort(y_prob) of the same array, "
        f"{best_of(effort)}; family {FAMILY}. Growth is the last ratio over the first. Where a "
        f"call took more than {_PATIENCE:g} s, more rows were not tried. np.sort itself: {times}."
    )
    header = ["measure", *map(size_name, sizes), "growth"]
    return Table("Growth, in multiples of np.sort", header, rows, note)
