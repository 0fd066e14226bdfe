"""How the cost of each measure grows with the rows, in multiples of ``np.sort``."""

from __future__ import annotations

import io
import math
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
from tqdm import tqdm

from benchmarks.families import FAMILIES
from benchmarks.measures import Measure
from benchmarks.tables import Table, number, size_name
from benchmarks.timing import Effort, best_of, processor_time
from caldist._util.atomic_files import write_atomically

FAMILY = "beta=3"
SIZES = (10**4, 10**5, 10**6, 10**7, 10**8)  # the last needs 16 GB of memory
EFFORT = Effort(seconds=0.6, fewest=2, most=100)
_PATIENCE = 4.0  # seconds of a call, after which ten times the rows are not tried
_COLUMNS = 5
_STYLE: dict[Any, Any] = {
    "font.size": 7,
    "axes.titlesize": 6.5,
    "figure.labelsize": 7,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "svg.fonttype": "path",
    "svg.hashsalt": "caldist",  # the same file for the same numbers
}

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


def draw_growth(ratios: Ratios, path: Path) -> None:
    """Draw a small figure for each measure, all on the same axes: flat means as np.sort grows."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    from caldist.plots._style import DARK, GREY, plain_axes

    with mpl.rc_context(_STYLE):
        n_rows = math.ceil(len(ratios) / _COLUMNS)
        figure = Figure(figsize=(7.4, 1.0 * n_rows + 0.35), layout="constrained")
        grid = figure.subplots(n_rows, _COLUMNS, sharex=True, sharey=True, squeeze=False)
        for ax in grid.flat[len(ratios) :]:
            ax.set_axis_off()
        decades = sorted({n for found in ratios.values() for n in found})
        for at, (ax, (name, found)) in enumerate(zip(grid.flat, ratios.items(), strict=False)):
            ax.axhline(1, color=GREY, linewidth=0.6, linestyle=(0, (2, 2)))
            ax.plot(
                list(found), list(found.values()), color=DARK, linewidth=1.2, marker="o",
                markersize=2.6, markerfacecolor="white", markeredgewidth=0.8,
            )  # fmt: skip
            ax.set(xscale="log", yscale="log")
            ax.set_title(name, loc="left", pad=2)
            ax.minorticks_off()
            ax.set_xticks(decades, [f"{n:.0e}".replace("e+0", "e") for n in decades])
            ax.yaxis.set_major_formatter("{x:g}")
            plain_axes(ax)
            ax.tick_params(labelbottom=at + _COLUMNS >= len(ratios))
        figure.supxlabel("rows")
        figure.supylabel("multiples of np.sort")
        drawn = io.BytesIO()
        figure.savefig(drawn, format=path.suffix[1:] or "svg", metadata={"Date": None})

    def fill(file: IO[bytes]) -> None:
        file.write(drawn.getvalue())

    write_atomically(path, fill)
