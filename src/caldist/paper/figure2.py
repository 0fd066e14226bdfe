"""Figure 2: the measures over the temperature, estimated, exact and in the population."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

import caldist
from caldist.paper import style
from caldist.paper.common import SEED, Drawing, Section, Table, bar
from caldist.paper.estimators import estimate_kernel_ce, estimate_surrogate_interval_ce
from caldist.paper.families import sample, temperature_family

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["FULL", "QUICK", "Plan", "compute", "draw", "population_values"]

Labels = NDArray[np.int64]
Vector = NDArray[np.float64]

SHIFTS = 1_000  # random shifts per width of the Monte Carlo SintCE
TOLERANCE = 1e-5  # of ldCE on samples, far below what the figure can show


_TEXT = """\
The measures over the temperature, mean and standard deviation of {trials} samples. Left, with
the paper's own estimators: 20 bins of equal width; kCE from 10 N random pairs; SintCE at
precision 0.01, with {shifts:,} random shifts for each width; smCE as the optimum of its linear
program. Right, the exact values on the same samples, with intCE itself and ldCE, which the paper
does not plot. Thin lines are the population's values.

The distance to calibration lies between ldCE and intCE. The Monte Carlo SintCE is hardly
different from the exact one. The sub-sampled kCE strays far from the exact one where that is
small: the error of a square near 0 is large in its root. At high temperatures all predictions
are near ½; binnedECE, which has an edge there, stays at ¼ while the distance goes to 0.
"""


@dataclass(frozen=True)
class Plan:
    """The temperatures, sample sizes, repetitions, and nodes of the quadrature."""

    temperatures: tuple[float, ...]
    n_rows: tuple[int, ...]
    trials: int
    nodes: int


def _grid(count: int) -> tuple[float, ...]:
    return tuple(float(f"{t:.6g}") for t in np.geomspace(0.1, 100, count))


FULL = Plan(_grid(31), (10_000, 1_000), trials=50, nodes=100_000)
QUICK = Plan(_grid(7), (10_000, 1_000), trials=5, nodes=10_000)

Estimator = Callable[[Labels, Vector, np.random.Generator], float]

# What the paper computes, each with its own method.
PAPER: dict[str, Estimator] = {
    "binnedECE": lambda y, p, _: caldist.binned_ece(y, p, n_bins=20),
    "binnedECEw": lambda y, p, _: caldist.binned_ece(y, p, n_bins=20, add_width=True),
    "SintCE": lambda y, p, rng: estimate_surrogate_interval_ce(y, p, n_shifts=SHIFTS, rng=rng),
    "kCE": lambda y, p, rng: estimate_kernel_ce(y, p, rng=rng),
    "smCE": lambda y, p, _: caldist.smooth_ce(y, p),
}
# The exact values on the same rows, with two that the paper does not plot.
EXACT: dict[str, Estimator] = {
    "SintCE": lambda y, p, _: caldist.surrogate_interval_ce(y, p),
    "intCE": lambda y, p, _: caldist.interval_ce(y, p),
    "kCE": lambda y, p, _: caldist.kernel_ce(y, p),
    "smCE": lambda y, p, _: caldist.smooth_ce(y, p),
    "ldCE": lambda y, p, _: caldist.lower_distance(y, p, tol=TOLERANCE),
}


def population_values(temperature: float, nodes: int) -> dict[str, float]:
    """Return each measure of the population, by quadrature of its density."""
    joint = temperature_family(temperature, nodes).joint
    return {
        "binnedECE": caldist.binned_ece(joint, n_bins=20),
        "binnedECEw": caldist.binned_ece(joint, n_bins=20, add_width=True),
        "SintCE": caldist.surrogate_interval_ce(joint),
        "intCE": caldist.interval_ce(joint),
        "kCE": caldist.kernel_ce(joint),
        "smCE": caldist.smooth_ce(joint),
        "ldCE": caldist.lower_distance(joint),
    }


def compute(plan: Plan) -> Section:
    """Compute all curves."""
    rows: list[tuple[str | int | float, ...]] = []
    cases = [(n, at) for n in plan.n_rows for at in range(len(plan.temperatures))]
    for n_rows, at in bar(cases, "figure 2, samples"):
        temperature = plan.temperatures[at]
        values: dict[tuple[str, str], list[float]] = {}
        for trial in range(plan.trials):
            rng = np.random.default_rng((SEED, 2, n_rows, at, trial))
            label, prediction = sample(temperature, n_rows, rng)
            for method, measures in (("paper", PAPER), ("exact", EXACT)):
                for symbol, estimate in measures.items():
                    value = estimate(label, prediction, rng)
                    values.setdefault((symbol, method), []).append(value)
        for (symbol, method), found in values.items():
            mean, deviation = float(np.mean(found)), float(np.std(found, ddof=1))
            rows.append((n_rows, temperature, symbol, method, mean, deviation))
    symbols = tuple(style.LINES)
    curves = []
    for temperature in bar(plan.temperatures, "figure 2, population"):
        exact = population_values(temperature, plan.nodes)
        curves.append((temperature, *(exact[symbol] for symbol in symbols)))
    return Section(
        text=_TEXT.format(trials=plan.trials, shifts=SHIFTS),
        tables=(
            Table(
                "figure2_population",
                f"The population, by quadrature with {plan.nodes:,} nodes",
                ("temperature", *symbols),
                tuple(curves),
            ),
            Table(
                "figure2_samples",
                f"Samples, {plan.trials} for each temperature and number of rows",
                ("rows", "temperature", "measure", "method", "mean", "standard deviation"),
                tuple(rows),
                shown=False,
            ),
        ),
    )


def draw(section: Section) -> list[Drawing]:
    """Draw the samples, paper beside exact, and the population by itself."""
    return [_draw_samples(section), _draw_population(section)]


def _draw_samples(section: Section) -> Drawing:
    samples, population = section.table("figure2_samples"), section.table("figure2_population")
    sizes = sorted({int(row[0]) for row in samples.rows}, reverse=True)
    highest = float(np.sum(samples.numbers("mean", "standard deviation"), axis=0).max())
    with style.style():
        figure = style.figure(8.4, 2.9 * len(sizes))
        grid = figure.subplots(len(sizes), 2, sharex=True, sharey=True, squeeze=False)
        for across, n_rows in zip(grid, sizes, strict=True):
            for axes, method, measures in zip(
                across, ("paper", "exact"), (PAPER, EXACT), strict=True
            ):
                ends = {}
                for symbol in measures:
                    x, mean, deviation = samples.numbers(
                        "temperature", "mean", "standard deviation",
                        rows=n_rows, measure=symbol, method=method,
                    )  # fmt: skip
                    line = style.LINES[symbol]
                    low, high = np.subtract(mean, deviation), np.add(mean, deviation)
                    axes.fill_between(x, low, high, color=line["color"], alpha=0.22, linewidth=0)
                    axes.plot(x, mean, **line)
                    axes.plot(
                        *population.numbers("temperature", symbol), color=line["color"],
                        linewidth=0.5,
                    )  # fmt: skip
                    ends[symbol] = mean[-1]
                _axes(axes, x, highest)
                style.label_ends(axes, x[-1], ends)
                estimators = "the paper's estimators" if method == "paper" else "exact values"
                axes.set_title(f"N = {n_rows:,}: {estimators}")
            across[0].set_ylabel("value")
        for axes in grid[-1]:
            axes.set_xlabel("temperature")
    caption = (
        "Figure 2. Mean and standard deviation over samples of the temperature family (thick "
        "lines and bands) and the population's values (thin lines of the same colour)."
    )
    return Drawing("figure2", figure, caption)


def _draw_population(section: Section) -> Drawing:
    population = section.table("figure2_population")
    with style.style():
        figure = style.figure(5.6, 3.4)
        axes = figure.subplots()
        ends = {}
        for symbol, line in style.LINES.items():
            x, value = population.numbers("temperature", symbol)
            axes.plot(x, value, **line)
            ends[symbol] = value[-1]
        lower, upper = population.numbers("ldCE", "intCE")
        axes.fill_between(x, lower, upper, color="0.9", linewidth=0)
        axes.annotate("the distance to\ncalibration is here", (3.6, 0.075), color="0.3")
        _axes(axes, x, max(population.numbers("binnedECEw")[0]))
        style.label_ends(axes, x[-1], ends)
        axes.set_xlabel("temperature")
        axes.set_ylabel("value")
        axes.set_title("The population")
    caption = (
        "Figure 2, the population. The same measures without any sampling, by quadrature of the "
        "density; the values of samples scatter about these lines, mostly above."
    )
    return Drawing("figure2_population", figure, caption)


def _axes(axes: Axes, x: list[float], highest: float) -> None:
    axes.set_xscale("log")
    axes.set_xticks([0.1, 1, 10, 100], ["0.1", "1", "10", "100"])
    axes.minorticks_off()
    axes.set_xlim(x[0], x[-1])
    axes.set_ylim(0, 1.05 * highest)
