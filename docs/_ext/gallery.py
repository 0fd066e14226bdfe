"""Draw the gallery: a page with every display, some figures by hand, and the code of each.

The functions below are the code that the page shows; ``label`` and ``predictions`` are the data of
``caldist demo``. The page and its figures are written below ``gallery/`` when a build begins; git
ignores them.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray
from sphinx.application import Sphinx

import caldist
from caldist.plots import (
    BinnedDisplay,
    ClassReliabilityDisplay,
    ClasswiseDisplay,
    DecisionCurveDisplay,
    DistanceDisplay,
    MapDisplay,
    MonitorDisplay,
    ReliabilityDisplay,
    TopLabelDisplay,
    WitnessDisplay,
)

FOLDER = Path(__file__).resolve().parents[1] / "gallery"
RC: dict[Any, Any] = {"svg.fonttype": "path", "svg.hashsalt": "caldist", "font.size": 9}
HEAD = """\
# Gallery

Every display of `caldist.plots`, on the predictions of `caldist demo`: `label` is an array of 0 and
1, `predictions` a dict from the names of six models to their predicted probabilities. All take
`sample_weight`, an `ax` of your own, or a `Joint` in place of labels and predictions; those of
several classes take a matrix. They have `from_estimator` for scikit-learn's classifiers;
`.to_frame()` gives the numbers. Lines differ by dash and marker too, so that nothing is lost in
grey. The legend stands above the axes. The last figures are drawn by hand, with matplotlib and the
numbers of public functions: change them as you like.

```python
import matplotlib.pyplot as plt
import numpy as np

import caldist
from caldist.plots import (
{displays}
)

demo = caldist.datasets.load_demo()
label = demo.y_true
predictions = {{name.replace("_", " "): values for name, values in demo.y_prob.items()}}
```
"""

REPORT = """\
## The report

All of it in one page that stands alone, light or dark, on a screen, a phone or paper.

![The top of a report of three models: verdicts, bars and figures](../figures/report.png)

```python
names = ["logistic regression", "random forest", "decision tree"]
report = caldist.report(label, {name: predictions[name] for name in names})
report.to_html("report.html")
```
"""

Labels = NDArray[np.int64]
Models = dict[str, NDArray[np.float64]]


def reliability(label: Labels, predictions: Models) -> Any:
    """Reliability: one model. How often label 1 came true, smoothed and isotonic.

    If the predictions were calibrated, the smooth curve would stay in the band, as a whole, with
    95% probability. Markers are at the deciles of the predictions; their histograms by label stand
    below.
    """
    return ReliabilityDisplay.from_predictions(
        label, predictions["random forest"], name="random forest"
    )


def reliability_models(label: Labels, predictions: Models) -> Any:
    """Reliability: several models. A broad shade where a curve leaves its own band.

    The decision tree predicts 0 and 1 only, so it has two points.
    """
    names = ["logistic regression", "random forest", "decision tree"]
    return ReliabilityDisplay.from_predictions(label, {name: predictions[name] for name in names})


def reliability_rare(label: Labels, predictions: Models) -> Any:  # noqa: ARG001 -- data of its own
    """Reliability: rare events. Log odds tell risks of 1 in 10,000 and 1 in 100 apart.

    The legend has the mean prediction, the frequency, and the factor between them. Without
    `scale="logit"` the axes end at a round number that hardly any prediction exceeds. Witness,
    map, bins and decision curve have the same scales.
    """
    rng = np.random.default_rng(0)
    risk = 1 / (1 + np.exp(-rng.normal(-7, 1, 20_000)))
    event = rng.random(20_000) < 2 * risk
    return ReliabilityDisplay.from_predictions(event, risk, scale="logit", name="risk score")


def binned(label: Labels, predictions: Models) -> Any:
    """Reliability in bins: one model. The classic diagram, with gaps and the rows of each bin.

    Bins and numbers are those of scikit-learn's `calibration_curve`; whiskers are 95% intervals of
    the frequency, in each bin by itself.
    """
    return BinnedDisplay.from_predictions(label, predictions["random forest"], name="random forest")


def witness(label: Labels, predictions: Models) -> Any:
    """Witness: one model. Where predictions are too high or too low, and where that is certain.

    Above, the smoothed residuals, coloured in the regions that are certain at one error rate for
    all of them. Below, the Lipschitz function that attains the smooth calibration error.
    """
    return WitnessDisplay.from_predictions(
        label, predictions["random forest"], name="random forest"
    )


def witness_calibrated(label: Labels, predictions: Models) -> Any:
    """Witness: nothing to see. A well calibrated model has residuals, and a witness, by chance.

    They are grey, and the legend says that no region stands out, at 99% confidence here.
    """
    return WitnessDisplay.from_predictions(
        label,
        predictions["logistic regression"],
        name="logistic regression",
        confidence_level=0.99,
    )


def witness_models(label: Labels, predictions: Models) -> Any:
    """Witness: several models. A broad shade where a model's residuals are not by chance."""
    names = ["gradient boosting", "random forest"]
    return WitnessDisplay.from_predictions(label, {name: predictions[name] for name in names})


def distance(label: Labels, predictions: Models) -> Any:
    """Distance: all models. The picture that replaces a table of ECEs.

    The bar is certain for these rows; the thin line holds for the population they come from, with
    95% confidence.
    """
    return DistanceDisplay.from_predictions(label, predictions, confidence_level=0.95)


def nearest_map(label: Labels, predictions: Models) -> None:
    """By hand: the nearest calibrated predictions. Where each prediction goes.

    The mean vertical distance from the diagonal is the upper distance to calibration.
    """
    p = predictions["gradient boosting"]
    nearest = caldist.measures.nearest_calibrated(label, p)
    order = np.argsort(p)
    _, ax = plt.subplots(figsize=(4.6, 4.6), layout="constrained")
    ax.plot([0, 1], [0, 1], color="0.6", linewidth=0.8)
    ax.fill_between(p[order], p[order], nearest[order], color="0.85", rasterized=True)
    ax.plot(p[order], nearest[order])
    ax.set(xlabel="prediction", ylabel="nearest calibrated prediction", aspect="equal")
    ax.set_title(f"gradient boosting: moved by {np.mean(np.abs(nearest - p)):.4f} on average")


def nearest_coupling(label: Labels, predictions: Models) -> None:
    """By hand: the cheapest coupling. How far predictions have to move, if labels may be seen.

    Rows with the same prediction may part by their label. The mean vertical distance from the
    diagonal is the lower distance to calibration; the certificate proves that no plan moves less.
    """
    p = predictions["random forest"]
    moves = caldist.certify(label, p, measure="lower_distance").coupling()
    _, ax = plt.subplots(figsize=(4.6, 4.6), layout="constrained")
    ax.plot([0, 1], [0, 1], color="0.6", linewidth=0.8)
    for value, marker in ((1, "o"), (0, "s")):
        of = moves.label == value
        name = f"rows with y = {value}"
        ax.plot(moves.source[of], moves.target[of], marker, ms=3, rasterized=True, label=name)
    cost = moves.mass @ np.abs(moves.source - moves.target)
    ax.set(xlabel="prediction", ylabel="calibrated prediction", aspect="equal")
    ax.set_title(f"random forest: moved by {cost:.4f} on average")
    ax.legend(frameon=False)


def recalibration_map(label: Labels, predictions: Models) -> Any:
    """Recalibration: what the map makes of each prediction, and what is proved of it.

    The frequency of label 1 over the prediction should be near the map before, and near the
    diagonal after. The legend has limits of the smooth calibration error in the population.
    """
    return MapDisplay.from_predictions(
        label,
        predictions["random forest"],
        name="random forest",
        confidence_level=0.95,
        n_resamples=199,
    )


def recalibration_maps(label: Labels, predictions: Models) -> Any:
    """Recalibration: several models. Their maps, and where their predictions go."""
    names = ["logistic regression", "random forest", "naive Bayes"]
    return MapDisplay.from_predictions(label, {name: predictions[name] for name in names})


def cumulative(label: Labels, predictions: Models) -> None:
    """By hand: cumulative residuals. Label minus prediction, added up without smoothing or bins.

    Rising: predictions are too low there; the slope between two points is the mean residual of the
    rows between them. The largest distance from 0 is `ecce_mad`, the range is `ecce_range`. Sums of
    calibrated predictions stay in the band with 95% probability, if rows are many: they behave as a
    Brownian motion on [0, 1], whose largest absolute value is below 2.2414 with that probability
    (Arrieta-Ibarra et al., 2022). Equal predictions are one step.
    """
    names = ["logistic regression", "random forest"]
    _, ax = plt.subplots(figsize=(5.2, 3.6), layout="constrained")
    for name, colour in zip(names, ["#14375e", "#b5490b"], strict=True):
        p = predictions[name]
        joint = caldist.Joint.from_arrays(label, p)
        share = np.cumsum(joint.mass0 + joint.mass1) / p.size
        largest = caldist.measures.ecce_mad(joint)
        ax.plot([0, *share], joint.prefix_sums(), color=colour, label=f"{name}, {largest:.4f}")
        band = 2.2414 * np.sqrt(np.sum(p * (1 - p))) / p.size
        ax.axhspan(-band, band, color=colour, alpha=0.12, linewidth=0)
    ax.axhline(0, color="0.4", linewidth=0.8)
    ax.set(
        xlabel="share of the rows, by increasing prediction",
        ylabel="cumulative residual",
        xlim=(0, 1),
    )
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1), title="largest sum")


def decision(label: Labels, predictions: Models) -> Any:
    """Decision curves: several models. What acting on their predictions is worth.

    A model is of use where its net benefit is above that of treating all rows and that of treating
    none. The bands hold at each threshold by itself.
    """
    names = ["logistic regression", "naive Bayes"]
    return DecisionCurveDisplay.from_predictions(label, {name: predictions[name] for name in names})


def monitor(label: Labels, predictions: Models) -> Any:
    """Monitor: a model that was replaced. The alarm, the distance, and what is wrong since when.

    On day 31 naive Bayes takes the place of logistic regression. The e-value may be looked at every
    day; the onset and the errors since then are estimates.
    """
    watched = caldist.Monitor(tolerance=0.02)
    for day in range(60):
        model = predictions["logistic regression" if day < 30 else "naive Bayes"]
        rows = slice(day % 30, None, 30)
        watched.update(label[rows], model[rows], batch=day + 1)
    return MonitorDisplay.from_monitor(watched)


def classwise(label: Labels, predictions: Models) -> Any:  # noqa: ARG001 -- data of its own
    """Several classes: bars. What each class has to do with the classwise distance, worst first.

    Naive Bayes on scikit-learn's digits. A bar that ends near its diamond says nothing against the
    class; the line across a bar is what is certain of the population, at 95% for each.
    """
    from sklearn.datasets import load_digits
    from sklearn.naive_bayes import GaussianNB

    digits = load_digits()
    model = GaussianNB(var_smoothing=1e-3).fit(digits.data[::2], digits.target[::2])
    return ClasswiseDisplay.from_estimator(model, digits.data[1::2], digits.target[1::2])


def class_curves(label: Labels, predictions: Models) -> Any:  # noqa: ARG001 -- data of its own
    """Several classes: reliability. The most probable class, and the three worst classes.

    Confidences, on the left, are a question of their own: they bound nothing about the whole.
    """
    from sklearn.datasets import load_digits
    from sklearn.naive_bayes import GaussianNB

    digits = load_digits()
    model = GaussianNB(var_smoothing=1e-3).fit(digits.data[::2], digits.target[::2])
    matrix = model.predict_proba(digits.data[1::2])
    _, (left, right) = plt.subplots(1, 2, figsize=(8, 6), layout="constrained")
    TopLabelDisplay.from_predictions(digits.target[1::2], matrix, name="naive Bayes", ax=left)
    return ClassReliabilityDisplay.from_predictions(digits.target[1::2], matrix, most=3, ax=right)


def triangle(label: Labels, predictions: Models) -> None:  # noqa: ARG001 -- data of its own
    """By hand: three classes as a triangle. Arrows lead from similar predictions to what came true.

    The ring: every class is calibrated by itself, and so is every group of classes, but the whole
    is not. No bar per class can show it; the arrows go round. A point of the triangle has the
    probabilities as barycentric coordinates. Bold arrows are longer than chance explains, by
    Pearson's χ² test with 5% for all of them together (Bonferroni).
    """
    from scipy.stats import chisquare

    rng = np.random.default_rng(0)
    angle = 2 * np.pi * rng.random(4000)[:, None] + np.array([0, 2, 4]) * np.pi / 3
    y_prob = 1 / 3 + 0.24 * np.cos(angle)
    truth = y_prob - 0.15 * np.sin(angle)
    y_true = (truth.cumsum(axis=1) < rng.random((4000, 1))).sum(axis=1).clip(max=2)
    corners = np.array([[0, 0], [1, 0], [0.5, 0.75**0.5]])
    _, cell = np.unique(np.floor(7 * y_prob), axis=0, return_inverse=True)
    groups = [cell == at for at in range(cell.max() + 1) if np.sum(cell == at) >= 30]
    _, ax = plt.subplots(figsize=(4.8, 4.4), layout="constrained")
    ax.plot(*corners[[0, 1, 2, 0]].T, color="0.4", linewidth=0.8)
    ax.plot(*(y_prob[::8] @ corners).T, ".", color="0.75", markersize=3)
    for rows in groups:
        mean, count = y_prob[rows].mean(axis=0), np.bincount(y_true[rows], minlength=3)
        bold = chisquare(count, mean * rows.sum()).pvalue < 0.05 / len(groups)
        start, end = mean @ corners, count / rows.sum() @ corners
        look = {"arrowstyle": "-|>", "linewidth": 2.0 if bold else 0.8, "shrinkA": 0, "shrinkB": 0}
        ax.annotate("", end, start, arrowprops=look)
    for name, (x, y), side in zip("012", corners, ["top", "top", "bottom"], strict=True):
        ax.text(x, y, f" class {name} ", ha="center", va=side)
    ax.set_axis_off()
    ax.set_aspect("equal")


def panels(label: Labels, predictions: Models) -> Any:
    """Axes of your own. Two displays side by side; nothing outside of the axes is changed."""
    _, (left, right) = plt.subplots(1, 2, figsize=(8, 4.6), layout="constrained")
    ReliabilityDisplay.from_predictions(label, predictions["naive Bayes"], name="NB", ax=left)
    return DecisionCurveDisplay.from_predictions(
        label, predictions["naive Bayes"], name="NB", ax=right
    )


FIGURES: tuple[Callable[[Labels, Models], Any], ...] = (
    reliability, reliability_models, reliability_rare, binned, witness, witness_calibrated,
    witness_models, distance, recalibration_map, recalibration_maps, decision, monitor, classwise,
    class_curves, panels, nearest_map, nearest_coupling, cumulative, triangle,
)  # fmt: skip


def section(draw: Callable[[Labels, Models], Any]) -> str:
    """Return one section of the page: the title, what is seen, the figure and its code."""
    words = inspect.cleandoc(draw.__doc__ or "")
    title, _, rest = words.partition(". ")
    source = inspect.getsource(draw)
    code = textwrap.dedent(source.rsplit('"""', 1)[1].strip("\n")).replace("return ", "")
    text = " ".join(rest.split())
    return f"## {title}\n\n{text}\n\n![{title}]({draw.__name__}.svg)\n\n```python\n{code}\n```\n"


def page() -> str:
    """Return the page."""
    displays = ", ".join(name for name in caldist.plots.__all__ if name.endswith("Display"))
    lines = textwrap.fill(displays + ",", 92, initial_indent="    ", subsequent_indent="    ")
    return "\n".join((HEAD.format(displays=lines), *(section(draw) for draw in FIGURES), REPORT))


def demo_data() -> tuple[Labels, Models]:
    """Return the labels and the predictions that the page speaks of."""
    demo = caldist.datasets.load_demo()
    return demo.y_true, {name.replace("_", " "): p for name, p in demo.y_prob.items()}


def draw(figure: Callable[[Labels, Models], Any], label: Labels, models: Models) -> Path:
    """Draw one figure into the folder of the page, and return its path."""
    target = FOLDER / f"{figure.__name__}.svg"
    with mpl.rc_context(RC):
        figure(label, models)
        drawn = plt.gcf()
        drawn.savefig(target, metadata={"Date": None})
        plt.close(drawn)
    return target


def write_pages(_: Sphinx) -> None:
    """Draw the figures that are missing, and write the page."""
    mpl.use("agg")
    FOLDER.mkdir(exist_ok=True)
    label, models = demo_data()
    for figure in FIGURES:
        if not (FOLDER / f"{figure.__name__}.svg").exists():  # the slow part
            draw(figure, label, models)
    (FOLDER / "index.md").write_text(page(), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the page before Sphinx reads the sources."""
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
