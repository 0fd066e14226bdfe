"""The figures of a report: what they show, and how they are drawn when a page is made."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from caldist._util.brief import Brief
from caldist._util.numbers import down, percent, up
from caldist._util.optional import require
from caldist._util.progress import phases
from caldist.data.rows import Rows
from caldist.plots.decision import DecisionCurveDisplay, decision_curve, even_thresholds
from caldist.plots.display import Display
from caldist.plots.distance import DistanceDisplay, DistanceInterval
from caldist.plots.map import MapDisplay, recalibration_curve
from caldist.plots.reliability import ReliabilityDisplay, reliability_curve
from caldist.plots.scale import ScaleName
from caldist.plots.witness import WitnessDisplay, witness_curve
from caldist.recalibration.recalibration import Recalibration
from caldist.reporting.model import ModelReport

_OVERLAID = 4  # models that one pair of axes can show without confusion
_WIDTH = 4.2  # inches: letters stay legible at the width of a phone
_RARE, _MOST = 0.1, 0.95  # a share of the predictions beyond that calls for log odds
_NAME = 30  # letters of a model's name that fit into a figure


@dataclass(frozen=True, eq=False)
class Figure(Brief):
    """A figure of a report, as data.

    Attributes
    ----------
    caption, alt
        Words below it, and in its place.
    display
        Which of the displays of :mod:`caldist.plots` draws it.
    models
        What that shows of each model.
    height
        In inches.
    recalibration_of
        The model whose recalibration it shows, if it does.
    clinical
        Whether it belongs to the clinical measures.
    """

    caption: str
    alt: str
    display: type[Display[Any]]
    models: tuple[Any, ...]
    height: float
    recalibration_of: str | None = None
    clinical: bool = False

    def svg(self) -> str:
        """Draw on axes of their own, without pyplot's global state."""
        matplotlib = require("matplotlib", extra="report")
        figure_module = require("matplotlib.figure", extra="report")
        page = figure_module.Figure(figsize=(_WIDTH, self.height), layout="constrained")
        text = io.StringIO()
        real_text = {"svg.fonttype": "none", "svg.hashsalt": "caldist"}
        with warnings.catch_warnings(), matplotlib.rc_context(real_text):
            # The browser has fonts for letters that Matplotlib's own font lacks: it only measures.
            warnings.filterwarnings("ignore", "Glyph .* missing|.* does not support", UserWarning)
            self.display(self.models).plot(ax=page.add_subplot())
            page.savefig(text, format="svg", metadata={"Date": None})
        return text.getvalue()


def figures(
    models: Mapping[str, Rows],
    found: Sequence[ModelReport],
    recalibrations: Mapping[str, Recalibration],
    level: float,
    seed: int,
    *,
    progress: bool,
) -> tuple[Figure, ...]:
    """Return the figures of models, of which ``found`` is what the report says."""
    made = [_distance(found, level)]
    short = short_names(list(models))
    names = list(models)
    scale = fitting_scale(models.values())
    overlaid = range(0, len(names), _OVERLAID)
    with phases("figures", len(overlaid) + 2 * len(names), show=progress) as begin:
        for start in overlaid:
            begin("reliability")
            few = {short[name]: models[name] for name in names[start : start + _OVERLAID]}
            caption = (
                "The frequency of label 1 over the prediction; calibrated is the diagonal."
                f"{' The axes are of log odds.' if scale == 'logit' else ''}"
            )
            curves = tuple(
                reliability_curve(name, rows, level, np.random.default_rng(seed), scale)
                for name, rows in few.items()
            )
            height = 3.9 + 0.65 * len(few)  # square axes, and a histogram for each model
            said = " ".join(f"{curve.name} {' '.join(curve.rates.split())}." for curve in curves)
            made.append(Figure(caption, f"{caption} {said}", ReliabilityDisplay, curves, height))
        for model in found:
            name, rows = short[model.name], models[model.name]
            begin("witness")
            caption = (
                f"Where {model.name} errs, if it does: the smoothed residuals, coloured where they "
                "are beyond chance, and below them the witness of smCE."
            )
            witness = witness_curve(name, rows, model.regions, level, scale)
            made.append(Figure(caption, caption, WitnessDisplay, (witness,), 3.1))
        for key, rows in models.items():
            begin("recalibration")
            caption = (
                f"What recalibration would do to {key}: the map, how often label 1 came true "
                "before and after it, and where the predictions go."
            )
            curve = recalibration_curve(short[key], recalibrations[key], rows, scale)
            made.append(Figure(caption, caption, MapDisplay, (curve,), 4.9, recalibration_of=key))
    return tuple(made + _decisions(models, short, level, scale))


def fitting_scale(models: Iterable[Rows]) -> ScaleName:
    """Return "logit" where nearly all predictions are small, or nearly all large."""
    for rows in models:
        share = np.cumsum(rows.joint.mass0 + rows.joint.mass1)
        level = np.searchsorted(share, np.array([1 - _MOST, _MOST]) * share[-1])
        low, high = rows.joint.prediction[level.clip(max=share.size - 1)]
        if high > _RARE and low < 1 - _RARE:
            return "linear"
    return "logit"


def _decisions(
    models: Mapping[str, Rows], short: Mapping[str, str], level: float, scale: ScaleName
) -> list[Figure]:
    """Return decision curves, of models for which it is known which rows would be treated."""
    able = {
        name: rows
        for name, rows in models.items()
        if rows.joint.radius == 0 or rows.joint.grid is not None
    }
    made = []
    names = list(able)
    for start in range(0, len(names), _OVERLAID):
        few = {short[name]: able[name] for name in names[start : start + _OVERLAID]}
        at = even_thresholds(few.values(), scale)
        curves = tuple(decision_curve(name, rows, at, level, scale) for name, rows in few.items())
        caption = (
            "The decision curve: net benefit over the risk from which on one would act, beside "
            "those of treating all and none."
        )
        made.append(Figure(caption, caption, DecisionCurveDisplay, curves, 3.4, clinical=True))
    return made


def short_names(names: Sequence[str], letters: int = _NAME) -> dict[str, str]:
    """Leave out the middle of long names, unless two would then be the same."""
    end = letters // 3
    short = {
        name: name if len(name) <= letters else f"{name[: letters - end - 1]}…{name[-end:]}"
        for name in names
    }
    return short if len(set(short.values())) == len(names) else {name: name for name in names}


def _distance(found: Sequence[ModelReport], level: float) -> Figure:
    listed = "; ".join(
        f"{model.name}: {down(model.lower)} to {up(model.upper)}, population "
        f"{down(model.population_lower)} to {up(model.population_upper)}"
        for model in found
    )
    caption = (
        "The distance to calibration: bars for certain on these rows, thin lines for the "
        f"population with {percent(level)} confidence."
    )
    short = short_names([model.name for model in found], 20)  # they stand beside the axes
    intervals = tuple(
        DistanceInterval(  # ends as the text has them: rounded outwards
            short[model.name],
            float(down(model.lower)),
            float(up(model.upper)),
            float(down(model.population_lower)),
            float(up(model.population_upper)),
            level,
        )
        for model in found
    )
    height = 1.3 + 0.45 * len(found)
    alt = f"Distance to calibration. {listed}."
    return Figure(caption, alt, DistanceDisplay, intervals, height)
