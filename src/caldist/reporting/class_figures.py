"""The figures of a report on several classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from caldist._util.numbers import down, number, percent, up
from caldist.data.class_rows import ClassJoints, ClassRows
from caldist.plots.class_reliability import (
    MOST,
    ClassReliabilityDisplay,
    TopLabelDisplay,
    class_curves,
    top_label_rows,
)
from caldist.plots.classwise import MOST as BARS
from caldist.plots.classwise import ClassShares, ClasswiseDisplay, figure_height
from caldist.plots.distance import DistanceDisplay, DistanceInterval
from caldist.plots.reliability import reliability_curve
from caldist.reporting.class_verdict import DIGITS
from caldist.reporting.figures import Figure, short_names
from caldist.reporting.model import ClassModelReport

_OVERLAID = 4  # models that one pair of axes can show without confusion


def class_figures(
    models: Mapping[str, ClassRows | ClassJoints],
    found: Sequence[ClassModelReport],
    shares: Mapping[str, ClassShares],
    level: float,
    seed: int,
) -> tuple[Figure, ...]:
    """Return the figures of models; ``found`` and ``shares`` are what the report says of them."""
    made = _distances(found, level)
    short = short_names(list(models))
    for model in found:
        made.append(_bars(model, shares[model.name]))
    made += _top_labels(models, short, level, seed)
    for name, rows in models.items():
        made += _classes(name, rows, shares[name], level, seed)
    return tuple(made)


def _distances(found: Sequence[ClassModelReport], level: float) -> list[Figure]:
    """Return what is certain on these rows and what holds for the population, if that is known."""
    short = short_names([model.name for model in found], 20)  # they stand beside the axes
    intervals, listed = [], []
    for model in found:
        ends = (model.population_lower, model.population_upper)
        if model.upper is None or ends[0] is None or ends[1] is None:
            continue
        texts = (down(model.lower), up(model.upper), down(ends[0]), up(ends[1]))
        a, b, c, d = map(float, texts)  # ends as the text has them: rounded outwards
        intervals.append(DistanceInterval(short[model.name], a, b, c, d, level))
        listed.append("{}: {} to {}, population {} to {}".format(model.name, *texts))
    if not intervals:
        return []
    caption = (
        "The distance to calibration, the share of probability mass that has to move: bars for "
        f"certain on these rows, thin lines for the population with {percent(level)} confidence."
    )
    alt = f"Distance to calibration. {'; '.join(listed)}."
    height = 1.3 + 0.45 * len(intervals)
    return [Figure(caption, alt, DistanceDisplay, tuple(intervals), height)]


def _bars(model: ClassModelReport, shares: ClassShares) -> Figure:
    shown = min(BARS, len(shares.classes))
    left = len(shares.classes) - shown
    caption = (
        f"What each class has to do with the classwise distance of {model.name}, "
        f"{'all of them' if not left else f'the worst {shown} of {len(shares.classes):,}'}. A bar "
        "that ends near its diamond says nothing against the class."
    )
    listed = "; ".join(
        f"{line.name}: {number(line.share)}"
        + ("" if line.noise is None else f", {number(line.noise)} if calibrated")
        + ("" if line.lower is None else f", population at least {down(line.lower, DIGITS)}")
        for line in model.classes[:shown]
    )
    alt = f"{caption} {listed}."
    return Figure(caption, alt, ClasswiseDisplay, (shares,), figure_height(shown, left))


def _top_labels(
    models: Mapping[str, ClassRows | ClassJoints],
    short: Mapping[str, str],
    level: float,
    seed: int,
) -> list[Figure]:
    rows = {short[name]: rows for name, rows in models.items() if isinstance(rows, ClassRows)}
    made = []
    names = list(rows)
    for start in range(0, len(names), _OVERLAID):
        few = names[start : start + _OVERLAID]
        curves = tuple(
            reliability_curve(name, top_label_rows(rows[name]), level, np.random.default_rng(seed))
            for name in few
        )
        caption = (
            "Confidences: how often the most probable class is true, over its probability. It "
            "bounds nothing about the other probabilities."
        )
        made.append(Figure(caption, caption, TopLabelDisplay, curves, 3.9 + 0.65 * len(few)))
    return made


def _classes(
    name: str, rows: ClassRows | ClassJoints, shares: ClassShares, level: float, seed: int
) -> list[Figure]:
    numbers = shares.worst_first()[:MOST].tolist()
    if isinstance(rows, ClassRows):
        curves = class_curves(rows, numbers, "", level, seed)
    elif all(joint.n_rows is not None for joint in rows.joints):
        problems = list(rows.problems())
        curves = [
            reliability_curve(
                str(rows.names[at]), problems[at], level, np.random.default_rng((seed, at))
            )
            for at in numbers
        ]
    else:
        return []
    which = "the classes" if len(numbers) == rows.n_classes else f"the {len(numbers)} worst classes"
    caption = (
        f"How often {which} of {name} are true, each over its own probability; calibrated is the "
        "diagonal."
    )
    height = 3.9 + 0.65 * len(curves)
    return [Figure(caption, caption, ClassReliabilityDisplay, tuple(curves), height)]
