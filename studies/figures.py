"""The figures of the documentation, readable in print and in grey."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from caldist.paper.style import figure, render, style
from studies import coverage, power
from studies.laws import LAWS
from studies.measures import BRACKET, STUDIED
from studies.pages import has_few_events
from studies.runs import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["coverage_figure", "power_figure"]

_LEVEL = 0.95
_MARKERS = dict(zip(coverage.ROWS, ("o", "s", "^"), strict=True))
_TICKS = (0, 5, 20, 50, 100)

# Apart in lightness and dash; the combination, drawn last, is the heaviest.
_LINES: dict[str, dict[str, Any]] = {
    "hosmer_lemeshow": {"color": "#8a8a8a", "linestyle": "-"},
    "spiegelhalter": {"color": "#8a8a8a", "linestyle": (0, (1, 1))},
    "ecce_mad": {"color": "#8a8a8a", "linestyle": (0, (5, 2))},
    "smooth_ce": {"color": "#3f93c8", "linestyle": "-"},
    "random_interval_ce": {"color": "#b5490b", "linestyle": (0, (5, 1.5))},
    "auto": {"color": "black", "linestyle": "-", "linewidth": 2.0},
}


def coverage_figure(rows: Sequence[Row]) -> bytes:
    """Draw for each measure and law how often intervals miss the truth, as SVG."""
    measures = (*STUDIED, BRACKET)
    chosen = [row for row in rows if row["law"] in LAWS and float(row["level"]) == _LEVEL]
    with style():
        lines = math.ceil(len(measures) / 3)
        drawn = figure(7.2, 2.8 * lines)
        panels = np.ravel(drawn.subplots(lines, 3, sharex=True, sharey=True))
        for axes in panels[len(measures) :]:
            axes.set_visible(False)
        for axes, measure in zip(panels, measures, strict=False):
            _draw_misses(axes, [row for row in chosen if row["measure"] == measure])
            axes.set_title(measure)
        panels[0].set_yticks(range(len(LAWS)), list(LAWS))
        panels[0].set_ylim(len(LAWS) - 0.4, -0.6)
        for axes in panels[-3:]:
            axes.set_xlabel("intervals that miss the truth, %")
        handles, names = panels[0].get_legend_handles_labels()
        drawn.legend(handles, names, loc="outside lower center", ncols=2, frameon=False)
        return render(drawn)[0]


def _draw_misses(axes: Axes, rows: Sequence[Row]) -> None:
    order = list(LAWS)
    kinds = {"": {"mfc": "black", "mec": "black"}, "bootstrap_": {"mfc": "white", "mec": "#8a8a8a"}}
    for prefix, colours in kinds.items():
        for at, (n, marker) in enumerate(_MARKERS.items()):
            points = [
                (1 - float(row[f"{prefix}coverage"]), order.index(row["law"]) + 0.22 * (at - 1))
                for row in rows
                if int(row["rows"]) == n and row[f"{prefix}coverage"]
            ]
            # Roots, so that few misses are told apart.
            x, y = np.sqrt([x for x, _ in points]), [y for _, y in points]
            name = "percentile bootstrap" if prefix else "caldist"
            axes.plot(x, y, marker, ms=4, mew=0.8, label=f"{name}, n = {n:,}", **colours)
    for y in {order.index(row["law"]) for row in rows if has_few_events(row)}:
        axes.axhspan(y - 0.45, y + 0.45, color="#eeeeee", lw=0, zorder=0)
    axes.axvline(np.sqrt(1 - _LEVEL), color="black", lw=0.6, ls=(0, (4, 2)), zorder=0)
    axes.set_xlim(-0.05, 1.05)
    axes.set_xticks(np.sqrt(_TICKS) / 10, [str(tick) for tick in _TICKS])


def power_figure(rows: Sequence[Row]) -> bytes:
    """Draw the share of rejections over the strength of four kinds of miscalibration, as SVG."""
    chosen = [row for row in rows if row["kind"] == "power" and float(row["level"]) == 0.05]
    with style():
        drawn = figure(7.2, 5.2)
        panels = np.ravel(drawn.subplots(2, 2, sharey=True))
        for axes, (name, family) in zip(panels, power.FAMILIES.items(), strict=True):
            for test, line in _LINES.items():
                own = [row for row in chosen if row["law"] == name and row["test"] == test]
                share = [100 * int(row["rejected"]) / int(row["data_sets"]) for row in own]
                axes.plot([float(row["strength"]) for row in own], share, label=test, **line)
            axes.axhline(5, color="black", lw=0.6, ls=(0, (1, 2)), zorder=0)
            axes.set_title(name)
            axes.set_xlabel(family.text)
            axes.set_ylim(0, 101)
            axes.set_xlim(family.strengths[0], family.strengths[-1])
        for axes in panels[::2]:
            axes.set_ylabel("rejected at 5%, %")
        handles, names = panels[0].get_legend_handles_labels()
        drawn.legend(handles, names, loc="outside lower center", ncols=3, frameon=False)
        return render(drawn)[0]
