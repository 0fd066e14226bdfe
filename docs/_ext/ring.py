"""Draw the ring of the guide "Several classes" when a build begins: ``figures/ring.svg``.

Every class of it is calibrated, the whole is not: predictions lie on a circle about the middle of
the triangle, and what comes true is turned along it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from numpy.typing import NDArray
from sphinx.application import Sphinx

TARGET = Path(__file__).resolve().parents[1] / "figures" / "ring.svg"
POINTS, RADIUS, TURN = 36, 0.3, 0.6
CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(0.75)]])
TICKS = (0, 0.2, 0.4, 0.6)
SHOWN = slice(None, None, 2)  # points with an arrow
STYLE: dict[Any, Any] = {
    "font.size": 8,
    "axes.titlesize": 8.5,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "svg.fonttype": "path",
    "svg.hashsalt": "caldist",  # the same file every time
}
Matrix = NDArray[np.float64]


def ring() -> tuple[Matrix, Matrix]:
    """Return predictions on the circle, and the frequencies of the classes at each."""
    angle = 2 * np.pi * (np.arange(POINTS) + 0.5) / POINTS
    first, second = np.array([1, -1, 0]) / np.sqrt(2), np.array([1, 1, -2]) / np.sqrt(6)
    outwards = np.outer(np.cos(angle), first) + np.outer(np.sin(angle), second)
    along = np.outer(-np.sin(angle), first) + np.outer(np.cos(angle), second)
    prediction = 1 / 3 + RADIUS * outwards
    return prediction, prediction + TURN * RADIUS * along


def given_the_class(prediction: Matrix, frequency: Matrix, number: int) -> tuple[Matrix, Matrix]:
    """Return the different probabilities of one class, and how often it comes true at each."""
    value, place = np.unique(np.round(prediction[:, number], 12), return_inverse=True)
    rows = np.bincount(place)
    return value, np.bincount(place, frequency[:, number]) / rows


def draw_triangle(axes: Axes, prediction: Matrix, frequency: Matrix) -> None:
    """Draw the predictions, and arrows from them to what comes true."""
    axes.fill(*CORNERS.T, facecolor="none", edgecolor="0.55", linewidth=0.8)
    for name, corner in zip("ABC", CORNERS, strict=True):
        away = corner - CORNERS.mean(axis=0)
        x, y = corner + 0.07 * away / np.hypot(*away)
        axes.text(x, y, name, ha="center", va="center")
    start, end = prediction[SHOWN] @ CORNERS, frequency[SHOWN] @ CORNERS
    for one, other in zip(start, end, strict=True):
        axes.annotate("", other, one, arrowprops={"arrowstyle": "->", "linewidth": 1, "shrinkA": 0})
    axes.plot(*start.T, color="black", marker="o", markersize=3.5, linestyle="none")
    axes.set_aspect("equal")
    axes.set_ylim(-0.08, 1)
    axes.set_axis_off()
    axes.set_title("The whole: what comes true is turned")


def draw_class(axes: Axes, prediction: Matrix, frequency: Matrix) -> None:
    """Draw how often the first class comes true, at each point and at each of its probabilities."""
    axes.axline((0, 0), slope=1, color="0.55", linewidth=0.7, linestyle=(0, (2, 2)))
    value, often = given_the_class(prediction, frequency, 0)
    for v in value:
        ends = frequency[np.abs(prediction[:, 0] - v) < 1e-9, 0]
        axes.plot([v, v], [ends.min(), ends.max()], color="0.75", linewidth=0.8)
    axes.plot(
        *(prediction[:, 0], frequency[:, 0]), linestyle="none", marker="o", markersize=4.5,
        markerfacecolor="white", markeredgecolor="0.35", label="at each point of the circle",
    )  # fmt: skip
    axes.plot(
        *(value, often), linestyle="none", marker="o", markersize=4.5, color="black",
        label="at each probability of A",
    )  # fmt: skip
    axes.set_aspect("equal")
    axes.set(xlim=(0, 0.75), ylim=(0, 0.75), xticks=TICKS, yticks=TICKS)
    axes.set_xlabel("predicted probability of A")
    axes.set_ylabel("how often A comes true")
    axes.legend(frameon=False, loc="upper left")
    axes.set_title("Class A, as B and C: on the diagonal")


def write_figure(_: Sphinx) -> None:
    """Draw both panels and save them."""
    prediction, frequency = ring()
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.2, 3.3), layout=ConstrainedLayoutEngine(wspace=0.08))
        left, right = figure.subplots(1, 2)
        draw_triangle(left, prediction, frequency)
        draw_class(right, prediction, frequency)
        figure.savefig(TARGET, metadata={"Date": None})


def setup(app: Sphinx) -> dict[str, Any]:
    """Draw the figure before Sphinx reads the sources."""
    app.connect("builder-inited", write_figure)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
