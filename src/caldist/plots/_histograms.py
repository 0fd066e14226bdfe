"""Two histograms back to back in a lane below the unit square, one lane for each model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from caldist._util.types import Vector
from caldist.plots import _style

if TYPE_CHECKING:
    from matplotlib.axes import Axes


BINS = 40
_GAP, _HEIGHT = 0.05, 0.19  # of a lane, in units of the axes above it


def figure_height(models: int) -> float:
    """Return the inches that a unit square, lanes and a legend for so many models need."""
    return 3.5 * (1 + _GAP + _HEIGHT * models) + 0.17 * (models + 2) + 0.6


def histogram(place: Vector, mass: Vector) -> Vector:
    """Return the mass in each of 40 bins from 0 to 1."""
    inside = np.minimum((place * BINS).astype(np.intp), BINS - 1)
    return np.asarray(np.bincount(inside, mass, BINS), np.float64)


def draw(
    ax: Axes,
    at: int,
    above: Vector,
    below: Vector,
    names: tuple[str, str],
    *,
    largest: float = 1.0,
    side_length: float = 1.0,
) -> None:
    """Draw masses in even bins, up and down from the middle of lane ``at``.

    The bins go from 0 to ``largest``, the square above them from 0 to ``side_length``. The lanes
    are part of the axes, below 0, so that they stay with them in any layout.
    """
    look = _style.model_style(at)
    height = _HEIGHT * side_length
    top = -_GAP * side_length - at * height
    middle, half = top - height / 2, 0.46 * height
    highest = max(float(above.max()), float(below.max()))
    edges = np.linspace(0, largest, above.size + 1)
    for mass, side, share in ((above, 1, 0.8), (below, -1, 0.35)):
        ax.stairs(
            middle + side * half * mass / highest, edges, baseline=middle, fill=True,
            color=_style.tint(ax, look["color"], share), linewidth=0, zorder=2,
        )  # fmt: skip
    ax.plot([0, side_length], [middle, middle], color=look["color"], linewidth=0.5)
    ax.set_ylim(bottom=top - height)
    ax.spines["left"].set_bounds(0, side_length)
    if at == 0:
        for name, side in zip(names, (1, -1), strict=True):
            ax.annotate(
                name, (side_length, middle + side * half / 2), xytext=(5, 0),
                textcoords="offset points", va="center", fontsize="small", color=_style.GREY,
                annotation_clip=False,
            )  # fmt: skip
    else:
        ax.plot(
            [1.035 * side_length], [middle], linestyle="none", marker=look["marker"],
            color=look["color"], markerfacecolor="white", markersize=look["markersize"],
            clip_on=False,
        )  # fmt: skip
