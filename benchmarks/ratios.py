"""The main table: each measure on each family, as a multiple of ``np.argsort(y_prob)``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial

import numpy as np
from tqdm import tqdm

from benchmarks.families import Family
from benchmarks.measures import Measure
from benchmarks.tables import MISS, Table, number, size_name
from benchmarks.timing import Effort, Timing, best_of, side_by_side

Cell = tuple[str, str, int]  # measure, family, number of rows

_MILLION, _TEN_MILLION = 10**6, 10**7


def cells(
    measures: Sequence[Measure],
    families: Sequence[Family],
    sizes: Sequence[int],
    *,
    every_family: bool,
    every_size: bool,
) -> list[Cell]:
    """Return what is to be timed, what shares rows together.

    Families meant for some measures only, and sizes above a measure's largest one, are left out
    unless all are wanted.
    """
    return [
        (measure.name, family.name, n)
        for n in sizes
        for family in families
        for measure in measures
        if (every_family or not family.only or measure.name in family.only)
        and (every_size or measure.largest is None or n <= measure.largest)
    ]


def measure_cells(
    wanted: Sequence[Cell],
    measures: Sequence[Measure],
    families: Sequence[Family],
    effort: Effort,
) -> dict[Cell, Timing]:
    """Time each cell, from raw arrays in random order to the number."""
    function = {measure.name: measure for measure in measures}
    family = {family.name: family for family in families}
    timings: dict[Cell, Timing] = {}
    rows = None
    progress = tqdm(wanted, unit="cell", file=sys.stderr, disable=not sys.stderr.isatty())
    for cell in progress:
        name, source, n = cell
        progress.set_description(f"{name} on {source}, {size_name(n)}")
        if rows != (source, n):
            rows, sample = (source, n), family[source].make(n)
        timings[cell] = side_by_side(
            partial(function[name], sample), partial(np.argsort, sample.y_prob), effort
        )
    return timings


def _row(
    measure: Measure, family: Family, sizes: Sequence[int], timings: dict[Cell, Timing]
) -> list[str]:
    targets = measure.targets_on(family)
    ratio = {
        n: timings[measure.name, family.name, n].ratio
        for n in sizes
        if (measure.name, family.name, n) in timings
    }
    missed = [size_name(n) for n, value in ratio.items() if value > targets.get(n, value)]
    tested = any(n in targets for n in ratio)
    growth = ""
    if _MILLION in ratio and _TEN_MILLION in ratio:
        factor = ratio[_TEN_MILLION] / ratio[_MILLION]
        growth = number(factor)
        tested = tested or measure.growth is not None
        if measure.growth is not None and factor > measure.growth:
            missed.append("growth")
    judgement = f"{MISS} {', '.join(missed)}" if missed else "ok" if tested else ""
    shown = [number(ratio[n]) if n in ratio else "–" for n in sizes]
    return [measure.name, family.name, *shown, growth, _wanted(measure, family), judgement]


def _wanted(measure: Measure, family: Family) -> str:
    parts = [f"{limit:g} at {size_name(n)}" for n, limit in measure.targets_on(family).items()]
    if measure.growth is not None and not family.weighted:
        parts.append(f"growth {measure.growth:g}")
    return ", ".join(parts)


def ratio_table(
    measures: Sequence[Measure],
    families: Sequence[Family],
    sizes: Sequence[int],
    timings: dict[Cell, Timing],
    effort: Effort,
) -> Table:
    """Lay out the ratios: a row for each measure and family, a column for each size."""
    rows = [
        _row(measure, family, sizes, timings)
        for measure in measures
        for family in families
        if any(key[:2] == (measure.name, family.name) for key in timings)
    ]
    missed = sum(row[-1].startswith(MISS) for row in rows)
    judged = sum(bool(row[-1]) for row in rows)
    argsort = ", ".join(
        f"{number(1000 * min(t.reference for key, t in timings.items() if key[2] == n))} ms at "
        f"{size_name(n)}"
        for n in sizes
        if any(key[2] == n for key in timings)
    )
    note = (
        "Time from raw unsorted arrays to the number, validation included, in multiples of "
        "np.argsort(y_prob) of the same array; the two run in turn in one process, "
        f"{best_of(effort)}. Growth is the ratio at 1e7 over the ratio at 1e6. "
        f"np.argsort itself, on its fastest family: {argsort}. "
        f"Rows with a target: {judged}, missed: {missed}."
    )
    header = ["measure", "family", *map(size_name, sizes), "growth", "target", "verdict"]
    return Table("Measures, in multiples of np.argsort", header, rows, note)
