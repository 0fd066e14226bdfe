"""The figures of a report, drawn when a page is made."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caldist import _validate
from caldist._util.optional import require
from caldist.reporting.model import Figure, ModelReport
from caldist.reporting.verdict import down, percent, up

__all__ = ["figures"]

_OVERLAID = 4  # models that one pair of axes can show without confusion
_WIDTH = 4.2  # inches: letters stay legible at the width of a phone
_NAME = 30  # letters of a model's name that fit into a figure


def figures(
    label: NDArray[np.uint8],
    predictions: Mapping[str, NDArray[np.float64]],
    models: Sequence[ModelReport],
    sample_weight: ArrayLike | None,
    confidence_level: float,
    rng: _validate.Rng,
) -> tuple[Figure, ...]:
    """Return each figure's caption and alternative text, and how to draw it."""
    options = {"sample_weight": sample_weight}
    seeded = options | {"rng": rng if isinstance(rng, int | np.integer) else 0}
    found = [_distance(models, confidence_level)]
    short = _short_names(list(predictions))
    for names in _batches(list(predictions)):
        few = {short[name]: predictions[name] for name in names}
        found += [
            _drawn(
                "ReliabilityDisplay",
                "The frequency of label 1 over the prediction; calibrated is the diagonal.",
                (label, few),
                seeded | {"confidence_level": confidence_level},
                height=3.9 + 0.65 * len(few),  # square axes, and a histogram for each model
            ),
            _drawn(
                "CumulativeDisplay",
                "Sums of label minus prediction, from the smallest prediction on; calibrated stays "
                "within the band.",
                (label, few),
                options | {"confidence_level": confidence_level},
                height=3.1,
            ),
        ]
    for name, prediction in predictions.items():
        found += [
            _drawn(
                "WitnessDisplay",
                f"Where {name} errs, if it does: the smoothed residuals, coloured where they are "
                "beyond chance, and below them the witness of smCE.",
                (label, prediction),
                seeded | {"name": short[name]},
                height=3.1,
            ),
            _drawn(
                "TransportDisplay",
                f"The nearest calibrated predictions to those of {name}.",
                (label, prediction),
                options | {"name": short[name]},
                height=4.5,
            ),
        ]
    return tuple(found)


def _batches(names: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(names), _OVERLAID):
        yield names[start : start + _OVERLAID]


def _short_names(names: Sequence[str], letters: int = _NAME) -> dict[str, str]:
    """Leave out the middle of long names, unless two would then be the same."""
    end = letters // 3
    short = {
        name: name if len(name) <= letters else f"{name[: letters - end - 1]}…{name[-end:]}"
        for name in names
    }
    return short if len(set(short.values())) == len(names) else {name: name for name in names}


def _distance(models: Sequence[ModelReport], confidence_level: float) -> Figure:
    listed = "; ".join(
        f"{model.name}: {down(model.lower)} to {up(model.upper)}, population "
        f"{down(model.population_lower)} to {up(model.population_upper)}"
        for model in models
    )
    caption = (
        "The distance to calibration: bars for certain on these rows, thin lines for the "
        f"population with {percent(confidence_level)} confidence."
    )

    short = _short_names([model.name for model in models], 20)  # they stand beside the axes

    def draw(axes: Any) -> None:  # ends as the text has them: rounded outwards
        from caldist.plots import DistanceDisplay  # matplotlib is optional
        from caldist.plots.distance import DistanceInterval

        DistanceDisplay(
            [
                DistanceInterval(
                    short[model.name],
                    float(down(model.lower)),
                    float(up(model.upper)),
                    float(down(model.population_lower)),
                    float(up(model.population_upper)),
                    confidence_level,
                )
                for model in models
            ]
        ).plot(ax=axes)

    height = 1.3 + 0.45 * len(models)
    return caption, f"Distance to calibration. {listed}.", partial(_svg, draw, height)


def _drawn(
    display: str, caption: str, data: tuple[Any, Any], options: dict[str, Any], height: float
) -> Figure:
    def draw(axes: Any) -> None:
        from caldist import plots  # matplotlib is optional

        getattr(plots, display).from_predictions(*data, ax=axes, **options)

    return caption, caption, partial(_svg, draw, height)


def _svg(draw: Callable[[Any], None], height: float) -> str:
    """Draw on axes of their own, without pyplot's global state."""
    matplotlib = require("matplotlib", extra="report")
    figure_module = require("matplotlib.figure", extra="report")
    figure = figure_module.Figure(figsize=(_WIDTH, height), layout="constrained")
    draw(figure.add_subplot())
    text = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "caldist"}):
        figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()
