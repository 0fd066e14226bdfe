"""Figure 1: reliability diagrams of the temperature family, and its conditional densities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from caldist.paper import style
from caldist.paper.common import SEED, Drawing, Section, Table
from caldist.paper.families import sample, temper
from caldist.plots import ReliabilityCurve, ReliabilityDisplay

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["FULL", "QUICK", "Plan", "compute", "draw", "frequency_and_densities"]

Vector = NDArray[np.float64]

TEMPERATURES = (0.2, 0.5, 1.0, 2.0, 5.0)
_NAMES = {0.2: "T = 1/5", 0.5: "T = ½", 1.0: "T = 1", 2.0: "T = 2", 5.0: "T = 5"}
BINS = 20
HIGHEST = 3.4  # of the densities that is drawn; at low temperatures they have poles at 0 and 1


_TEXT = """\
The family of distributions of the experiments. A frequency f is uniform on [0, 1], the label is 1
with probability f, and the prediction is f at a temperature T: fᵝ / (fᵝ + (1 − f)ᵝ) with
β = 1/T. At T = 1 the predictions are calibrated; below they are overconfident, above
underconfident.
"""


@dataclass(frozen=True)
class Plan:
    """How finely the curves are drawn, and from how many rows the points beside them come."""

    points: int
    n_rows: int


FULL = Plan(points=401, n_rows=10_000)
QUICK = Plan(points=41, n_rows=1_000)


def frequency_and_densities(v: Vector, temperature: float) -> tuple[Vector, Vector, Vector]:
    """Return E[y|v] and the densities of the predictions v given y = 0 and given y = 1.

    The prediction v comes from f = v^T / (v^T + (1 - v)^T), which is uniform and equals E[y|v]. So
    v has the density df/dv, and given the label 1 twice f times that, as half the labels are 1.
    """
    f = temper(v, 1 / temperature)
    density = temperature * f * (1 - f) / (v * (1 - v))
    return f, 2 * (1 - f) * density, 2 * f * density


def compute(plan: Plan) -> Section:
    """Compute the curves and the binned frequencies of one sample."""
    v = (np.arange(plan.points) + 0.5) / plan.points
    curves, points = [], []
    for at, temperature in enumerate(TEMPERATURES):
        columns = frequency_and_densities(v, temperature)
        curves += [(temperature, *row) for row in np.column_stack((v, *columns)).tolist()]
        label, prediction = sample(temperature, plan.n_rows, np.random.default_rng((SEED, 1, at)))
        inside = np.minimum((prediction * BINS).astype(int), BINS - 1)
        count = np.bincount(inside, minlength=BINS)
        for k in np.flatnonzero(count >= 10).tolist():  # fewer rows say nothing
            mean = (prediction[inside == k].mean(), label[inside == k].mean())
            points.append((temperature, int(count[k]), *map(float, mean)))
    return Section(
        text=_TEXT,
        tables=(
            Table(
                "figure1_curves",
                "The frequency of label 1 given the prediction, and the densities of the "
                "prediction given each label, in closed form",
                ("temperature", "prediction", "frequency", "density given 0", "density given 1"),
                tuple(curves),
                shown=False,
            ),
            Table(
                "figure1_bins",
                f"Mean prediction and frequency of label 1 in {BINS} bins, from one sample of "
                f"{plan.n_rows:,} rows; bins with at least ten",
                ("temperature", "rows", "mean prediction", "frequency"),
                tuple(points),
                shown=False,
            ),
        ),
    )


def draw(section: Section) -> list[Drawing]:
    """Draw a reliability diagram for each temperature, with the densities below it."""
    curves, points = section.table("figure1_curves"), section.table("figure1_bins")
    with style.style():
        figure = style.figure(8.4, 2.45)
        for ax, temperature in zip(
            figure.subplots(1, len(TEMPERATURES)), TEMPERATURES, strict=True
        ):
            _draw_one(ax, temperature, curves, points)
            ax.set_title(_NAMES[temperature])
            ax.set_xticks([0, 0.5, 1], ["0", "½", "1"])
            ax.set_yticks([0, 0.5, 1], ["0", "½", "1"])
            if temperature != TEMPERATURES[0]:
                ax.set_ylabel("")
                ax.set_yticklabels([])
            if temperature != TEMPERATURES[-1]:
                for words in ax.texts:  # the names of the two densities stand at the last one
                    words.set_visible(False)
    caption = (
        "Figure 1. Above: the frequency of label 1 given the prediction, exactly (line) and in 20 "
        "bins of one sample (rings). Below: the densities of the predictions given label 1 "
        f"(upwards) and given label 0 (downwards), each to its own scale and cut off at {HIGHEST}."
    )
    return [Drawing("figure1", figure, caption)]


def _draw_one(ax: Axes, temperature: float, curves: Table, points: Table) -> None:
    """Draw the diagram of one temperature: the exact curve, and the rings of the sample on it."""
    v, frequency, density0, density1 = (
        np.array(column)
        for column in curves.numbers(
            "prediction", "frequency", "density given 0", "density given 1", temperature=temperature
        )
    )
    mean, share = points.numbers("mean prediction", "frequency", temperature=temperature)
    exact = ReliabilityCurve(
        name=_NAMES[temperature],
        prediction=np.concatenate(([0], v, [1])),
        frequency=np.concatenate(([0], frequency, [1])),
        mass0=np.minimum(density0, HIGHEST)[::4],  # as fine as can be seen
        mass1=np.minimum(density1, HIGHEST)[::4],
    )
    ReliabilityDisplay([exact]).plot(ax=ax)
    ax.plot(mean, share, "o", markersize=2.6, color="white", markeredgecolor="0.35", zorder=4)
    legend = ax.get_legend()
    if legend is not None:
        legend.remove()  # the title says it
