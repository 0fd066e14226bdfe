"""Draw the README's pictures, ``docs/figures``, from the demo's predictions.

- ``readme.svg``: left, what is certain about each model's distance to calibration, with its ECE
  beside it; right, how the binned ECE of the same predictions depends on the number of bins.
- ``reliability.svg``: the reliability diagram of one model, as in the gallery.
- ``report.png``: a report as Chromium shows it, where that is installed.
"""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from numpy.typing import NDArray
from PIL import Image

import caldist
from caldist.datasets import load_demo
from caldist.plots import DistanceDisplay, ReliabilityDisplay

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "figures"
REPORTED = ("logistic_regression", "random_forest", "decision_tree")
SCREEN = (1100, 1600)  # width and height in pixels
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
EMPHASISED = ("logistic_regression", "decision_tree")  # equal accuracy, unlike calibration
BINS = np.unique(np.geomspace(2, 10_000, 60).round().astype(int))
ECE_AT = 50_000  # where the limit of many bins is drawn
TICKS = (0, 0.05, 0.1, 0.15, 0.2)  # of the values, in both panels
GREY, PALE = "0.55", "0.82"
RING: dict[str, Any] = {
    "marker": "o",
    "markerfacecolor": "white",
    "markersize": 5.5,
    "linestyle": "none",
}
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
    "svg.hashsalt": "caldist",  # the same file from the same data
}


def save(figure: Figure, name: str) -> None:
    """Save a figure as SVG, a path on one line."""
    drawn = io.StringIO()
    figure.savefig(drawn, format="svg", metadata={"Date": None})
    lines = re.sub(r"\s*\n(?! *<)", " ", drawn.getvalue())
    (FOLDER / name).write_text(lines.rstrip() + "\n", encoding="utf-8")


def draw_distances(
    axes: Axes, label: NDArray[np.int64], predictions: dict[str, NDArray[np.float64]]
) -> None:
    """Draw for each model, best first, the certain range, smCE, kCE and ECE."""
    named = {name.replace("_", " "): prediction for name, prediction in predictions.items()}
    display = DistanceDisplay.from_predictions(label, named, ax=axes)
    for words in list(axes.texts):
        words.remove()  # the other measures stand there
    for line in display.lines_:
        line.set(color=PALE, linewidth=9, marker="")
    for row, (name, prediction) in enumerate(predictions.items()):
        bracket = display.models[row]
        smooth = caldist.smooth_ce(label, prediction)
        kernel = caldist.kernel_ce(label, prediction)
        ece = caldist.ece(label, prediction)
        axes.plot(
            [bracket.upper, ece], [row, row], color=GREY, linewidth=0.7, linestyle=(0, (2, 2))
        )
        axes.plot(kernel, row, color="black", marker="|", markersize=8)
        axes.plot(smooth, row, color="black", marker="o", markersize=5)
        axes.plot(ece, row, color="black", **RING)
        if name == "random_forest":
            above = row - 0.25
            axes.annotate("smCE", (smooth + 0.003, above), ha="right", va="bottom")
            axes.annotate("kCE", (kernel - 0.003, above), ha="left", va="bottom")
            axes.annotate("ECE", (ece, above), ha="center", va="bottom")
        if name == "naive_Bayes":
            below = row + 0.22
            axes.annotate("ldCE", (bracket.lower, below), ha="center", va="top")
            axes.annotate("udCE", (bracket.upper, below), ha="center", va="top")
    axes.grid(visible=False)
    axes.set_ylim(len(predictions) - 0.35, -0.5)
    axes.set_xlim(-0.004, 0.225)
    axes.set_xticks(TICKS)
    axes.tick_params(axis="x", labelsize="medium")
    axes.set_xlabel("value")
    axes.set_title("The distance to calibration is in the bar")


def draw_binned(
    axes: Axes, label: NDArray[np.int64], predictions: dict[str, NDArray[np.float64]]
) -> None:
    """Draw each model's binned ECE against the number of bins, and its limit, the ECE."""
    ends = {}
    for name, prediction in predictions.items():
        curve = [caldist.binned_ece(label, prediction, n_bins=int(bins)) for bins in BINS]
        ends[name] = caldist.ece(label, prediction)
        emphasised = name in EMPHASISED
        colour, width = ("black", 1.6) if emphasised else (GREY, 1.0)
        axes.plot(BINS, curve, color=colour, linewidth=width)
        axes.plot(
            [BINS[-1], ECE_AT], [curve[-1], ends[name]], color=colour, linewidth=0.7,
            linestyle=(0, (2, 2)),
        )  # fmt: skip
        axes.plot(ECE_AT, ends[name], color=colour, **RING)
    for name, height in spread(ends, gap=0.0115).items():
        axes.annotate(
            name.replace("_", " "), (ECE_AT, height), xytext=(7, 0), textcoords="offset points",
            va="center", color="black" if name in EMPHASISED else "0.35",
        )  # fmt: skip
    axes.set_xscale("log")
    axes.set_xticks(
        [2, 10, 100, 1000, 10_000, ECE_AT], ["2", "10", "100", "1,000", "10,000", "ECE"]
    )
    axes.minorticks_off()
    axes.set_xlim(2, ECE_AT * 1.2)
    axes.set_ylim(-0.004, 0.225)
    axes.set_yticks(TICKS)
    axes.set_xlabel("number of bins")
    axes.set_title("The binned ECE is what the bins make it")


def spread(heights: dict[str, float], gap: float) -> dict[str, float]:
    """Move labels down from the highest, just enough to be ``gap`` apart."""
    placed: dict[str, float] = {}
    ceiling = np.inf
    for name, height in sorted(heights.items(), key=lambda item: -item[1]):
        placed[name] = min(height, ceiling)
        ceiling = placed[name] - gap
    return placed


def draw_reliability(label: NDArray[np.int64], prediction: NDArray[np.float64]) -> None:
    """Draw the reliability diagram of one model."""
    with mpl.rc_context({"svg.fonttype": "path", "svg.hashsalt": "caldist", "font.size": 9}):
        display = ReliabilityDisplay.from_predictions(label, prediction, name="random forest")
        save(display.figure_, "reliability.svg")


def picture_report(label: NDArray[np.int64], predictions: dict[str, NDArray[np.float64]]) -> None:
    """Store a picture of a report as Chromium shows it."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        print("no Chromium is installed: the picture of the report stays as it is")
        return
    named = {name.replace("_", " "): predictions[name] for name in REPORTED}
    with tempfile.TemporaryDirectory() as folder:
        page, shot = Path(folder) / "report.html", Path(folder) / "report.png"
        caldist.report(label, named).to_html(page)
        command = [
            browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
            f"--user-data-dir={folder}/profile", "--window-size={},{}".format(*SCREEN),
            f"--screenshot={shot}", page.as_uri(),
        ]  # fmt: skip
        subprocess.run(command, check=True, capture_output=True, timeout=120)  # noqa: S603 -- the browser and a page of ours
        with Image.open(shot) as picture:
            picture.convert("RGB").quantize(128).save(FOLDER / "report.png", optimize=True)


def main() -> None:
    """Draw all pictures and save them."""
    demo = load_demo()
    label, predictions = demo.y_true, demo.y_prob
    by_smooth = sorted(predictions, key=lambda name: caldist.smooth_ce(label, predictions[name]))
    ordered = {name: predictions[name] for name in by_smooth}
    FOLDER.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8.4, 3.1), layout=ConstrainedLayoutEngine(wspace=0.08))
        left, right = figure.subplots(1, 2)
        draw_distances(left, label, ordered)
        draw_binned(right, label, ordered)
        save(figure, "readme.svg")
    draw_reliability(label, predictions["random_forest"])
    picture_report(label, predictions)


if __name__ == "__main__":
    main()
