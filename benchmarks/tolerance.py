"""Values within a tolerance, without a sort: as parts of np.argsort and of np.sort."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

import numpy as np

import caldist
from benchmarks.families import FAMILIES
from benchmarks.tables import Table, number, size_name, verdict
from benchmarks.timing import Effort, best_of, side_by_side
from caldist.data.rows import Rows

TOL = 1e-6
SIZES = (10**6, 10**7)
_TARGET = {10**7: 0.08}
_FAMILIES = ("beta=3", "calibrated", "narrow", "tied")
_MEASURES = (
    caldist.smooth_ce,
    caldist.kernel_ce,
    caldist.lower_distance,
    caldist.random_interval_ce,
    caldist.surrogate_interval_ce,
)


def _seconds(y_prob: np.ndarray, repeats: int) -> float:
    """Return the least time of np.sort."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        np.sort(y_prob)
        best = min(best, time.perf_counter() - start)
    return best


def tolerance_table(sizes: Sequence[int], effort: Effort, tol: float = TOL) -> Table:
    """Return the time of each measure, and what it leaves open, by family and number of rows."""
    rows = []
    for n in sizes:
        for family in _FAMILIES:
            sample = FAMILIES[family].make(n)
            y, p = sample.y_true, sample.y_prob
            sort = _seconds(p, effort.fewest)
            for measure in _MEASURES:
                timing = side_by_side(
                    partial(measure.using(tol=tol), y, p), partial(np.argsort, p), effort
                )
                known = Rows.as_given(y, p)
                found = measure.on_cells(known, tol)
                certain, bits = "sorted", "–"
                if found is not None and found[1] is not None and found[2] is not None:
                    certain, bits = f"{found[2] - found[1]:.1e}", f"{max(known._cells)}"  # noqa: SLF001
                target = _TARGET.get(n)
                rows.append(
                    [
                        measure.name,
                        family,
                        size_name(n),
                        number(timing.ratio),
                        number(timing.seconds / sort),
                        bits,
                        certain,
                        "" if target is None else f"{target:g}",
                        "" if target is None else verdict(timing.ratio <= target),
                    ]
                )
    header = [
        "measure",
        "family",
        "rows",
        "of argsort",
        "of sort",
        "bits",
        "certain within",
        "target",
        "verdict",
    ]
    note = (
        f"Time from raw unsorted arrays to the number with tol={tol:g}, validation included, in "
        f"parts of np.argsort(y_prob) and np.sort(y_prob); {best_of(effort)}. Bits are those of "
        "the last grid. Where rows were sorted, no grid with a fifteenth as many cells was fine "
        "enough."
    )
    return Table(f"Within {tol:g}, without a sort", header, rows, note)
