"""Sample complexity: how fast the value on a sample approaches the population's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import caldist
from caldist.paper import style
from caldist.paper.common import SEED, Drawing, Section, Table, bar
from caldist.paper.families import sample, temperature_family

__all__ = ["FULL", "QUICK", "Plan", "compute", "draw"]

TEMPERATURES = (0.5, 1.0)
# What the theorems on samples speak of, and the exponents that they prove.
MEASURES: dict[str, Callable[..., float]] = {
    "smCE": caldist.smooth_ce,
    "kCE": caldist.kernel_ce,
    "ldCE": caldist.lower_distance,
    "SintCE": caldist.surrogate_interval_ce,
}
PROVED = {"smCE": -1 / 2, "kCE": -1 / 2, "ldCE": -1 / 2, "SintCE": -1 / 3}

_TEXT = """\
How far the value on n rows is from the population's, which is known: from quadrature at T = ½,
where predictions are overconfident, and 0 at T = 1, where they are calibrated. The theorems
promise an error of 1/√n for smCE, kCE and ldCE and of 1/∛n for SintCE. The calibrated
population attains both exponents; away from calibration SintCE does better than its bound.
"""


@dataclass(frozen=True)
class Plan:
    """The numbers of rows, how many samples of each, and the nodes of the quadrature."""

    n_rows: tuple[int, ...]
    trials: int
    nodes: int


FULL = Plan((100, 316, 1_000, 3_162, 10_000, 31_623, 100_000), trials=100, nodes=200_000)
QUICK = Plan((100, 1_000, 10_000), trials=20, nodes=20_000)


def compute(plan: Plan) -> Section:
    """Compute the mean absolute error for each measure and number of rows."""
    errors: list[tuple[str | int | float, ...]] = []
    slopes: list[tuple[str | int | float, ...]] = []
    cases = [(at, n) for at in range(len(TEMPERATURES)) for n in plan.n_rows]
    truth = [_population(temperature, plan.nodes) for temperature in TEMPERATURES]
    for at, n_rows in bar(cases, "sample complexity"):
        found: dict[str, list[float]] = {symbol: [] for symbol in MEASURES}
        for trial in range(plan.trials):
            rng = np.random.default_rng((SEED, 4, at, n_rows, trial))
            label, prediction = sample(TEMPERATURES[at], n_rows, rng)
            for symbol, measure in MEASURES.items():
                found[symbol].append(measure(label, prediction) - truth[at][symbol])
        for symbol, error in found.items():
            size = np.abs(error)
            row = (float(size.mean()), float(np.quantile(size, 0.9)), float(np.mean(error)))
            errors.append((TEMPERATURES[at], symbol, n_rows, truth[at][symbol], *row))
    columns = ("temperature", "measure", "rows", "population")
    table = Table(
        "sample_complexity",
        f"Error against the population's value, over {plan.trials} samples",
        (*columns, "mean absolute error", "90% of errors below", "bias"),
        tuple(errors),
        shown=False,
    )
    for temperature in TEMPERATURES:
        for symbol, proved in PROVED.items():
            n, error = table.numbers(
                "rows", "mean absolute error", temperature=temperature, measure=symbol
            )
            slope = float(np.polyfit(np.log(n), np.log(error), 1)[0])
            slopes.append((temperature, symbol, proved, slope))
    return Section(
        text=_TEXT,
        tables=(
            table,
            Table(
                "sample_complexity_slopes",
                "Exponents: the line fitted to the logarithms, and the proved bound",
                ("temperature", "measure", "proved", "fitted"),
                tuple(slopes),
            ),
        ),
    )


def _population(temperature: float, nodes: int) -> dict[str, float]:
    if temperature == 1:
        return dict.fromkeys(MEASURES, 0.0)  # calibrated: not subject to the quadrature's error
    joint = temperature_family(temperature, nodes).joint
    return {symbol: measure(joint) for symbol, measure in MEASURES.items()}


def draw(section: Section) -> list[Drawing]:
    """Draw the errors over the number of rows, log-log, with lines of the proved slopes."""
    table = section.table("sample_complexity")
    with style.style():
        figure = style.figure(8.4, 3.2)
        grid = figure.subplots(1, len(TEMPERATURES), sharey=True)
        for axes, temperature in zip(grid, TEMPERATURES, strict=True):
            ends = {}
            for symbol in MEASURES:
                n, error = table.numbers(
                    "rows", "mean absolute error", temperature=temperature, measure=symbol
                )
                line = style.LINES[symbol]
                axes.plot(n, error, marker="o", markersize=2.5, clip_on=False, **line)
                ends[symbol] = error[-1]
            axes.set(xscale="log", yscale="log", xlim=(80, n[-1]), ylim=(2e-4, 0.6))
            for slope, start, words in ((-1 / 2, 0.07, "$n^{-1/2}$"), (-1 / 3, 0.37, "$n^{-1/3}$")):
                guide = [start * (size / n[0]) ** slope for size in (n[0], n[-1])]
                axes.plot([n[0], n[-1]], guide, color="0.7", linewidth=0.8, zorder=0)
                axes.annotate(
                    words, (6 * n[0], start * 6**slope), color="0.45", ha="center", va="center",
                    bbox={"facecolor": "white", "edgecolor": "none", "pad": 1}, zorder=0,
                )  # fmt: skip
            style.label_ends(axes, n[-1], ends)
            axes.set_xticks([100, 1_000, 10_000, 100_000], ["100", "1,000", "10,000", "100,000"])
            axes.minorticks_off()
            axes.set_xlim(80, n[-1])
            axes.set_xlabel("rows n")
        grid[0].set_yticks([0.001, 0.01, 0.1], ["0.001", "0.01", "0.1"])
        grid[0].set_ylabel("mean absolute error")
        grid[0].set_title("T = ½, overconfident")
        grid[1].set_title("T = 1, calibrated")
    caption = (
        "Sample complexity. The mean absolute error of each measure against its population value; "
        "grey lines have the slopes of the proved rates."
    )
    return [Drawing("sample_complexity", figure, caption)]
