"""Two histograms back to back in a lane below the unit square, one lane for each model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from caldist._util.types import Vector
from caldist.plots import _style
from caldist.plots.scale import Scale

if TYPE_CHECKING:
    from matplotlib.axes import Axes


BINS = 40
_ROUNDED = 1e-6  # of a bin
_GAP, _HEIGHT = 0.05, 0.19  # of a lane, in units of the axes above it


def figure_height(models: int) -> float:
    """Return the inches that a unit square, lanes and a legend for so many models need."""
    return 3.5 * (1 + _GAP + _HEIGHT * models) + 0.17 * (models + 2) + 0.6


def histogram(place: Vector, mass: Vector) -> Vector:
    """Return the mass in each of 40 bins from 0 to 1, of places on an axis.

    What is an edge but for rounding, be it of numbers or in a summary, belongs to the bin above.
    """
    inside = np.minimum((place * BINS + _ROUNDED).astype(np.intp), BINS - 1)
    return np.asarray(np.bincount(inside, mass, BINS), np.float64)


def draw(
    ax: Axes,
    at: int,
    above: Vector,
    below: Vector,
    names: tuple[str, str],
    *,
    bins: Scale,
    axis: Scale,
) -> None:
    """Draw masses in bins, up and down from the middle of lane ``at``.

    The bins are even on ``bins``, the square above them has the scale ``axis``. The lanes are part
    of the axes, below it, so that they stay with them in any layout.
    """
    look = _style.model_style(at)
    top = -_GAP - at * _HEIGHT
    middle, half = top - _HEIGHT / 2, 0.46 * _HEIGHT
    highest = max(float(above.max()), float(below.max()))
    edges = bins.prediction(np.linspace(0, 1, above.size + 1))
    for mass, side, share in ((above, 1, 0.8), (below, -1, 0.35)):
        ends = [axis.below(middle + side * half * part / highest) for part in mass.tolist()]
        ax.stairs(
            ends, edges, baseline=axis.below(middle), fill=True,
            color=_style.tint(ax, look["color"], share), linewidth=0, zorder=2,
        )  # fmt: skip
    ends = [axis.lower, axis.upper]
    ax.plot(ends, [axis.below(middle)] * 2, color=look["color"], linewidth=0.5)
    ax.set_ylim(bottom=axis.below(top - _HEIGHT))
    ax.spines["left"].set_bounds(axis.lower, axis.upper)
    if at == 0:
        for name, side in zip(names, (1, -1), strict=True):
            ax.annotate(
                name, (axis.upper, axis.below(middle + side * half / 2)), xytext=(5, 0),
                textcoords="offset points", va="center", fontsize="small", color=_style.GREY,
                annotation_clip=False,
            )  # fmt: skip
    else:
        ax.plot(
            [1.035], [axis.below(middle)], transform=ax.get_yaxis_transform(), linestyle="none",
            marker=look["marker"], color=look["color"], markerfacecolor="white",
            markersize=look["markersize"], clip_on=False,
        )  # fmt: skip
