"""The table of ``caldist demo``: every measure on the predictions of six well-known classifiers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from caldist._util.numbers import number
from caldist._util.text_tables import aligned
from caldist._util.types import Vector
from caldist.data.doubts import doubts_said
from caldist.datasets import load_demo
from caldist.measures.evaluation import evaluate
from caldist.measures.registry import shown_in

_HEADING = """\
Is a handwritten digit 5 or larger? {models} classifiers, each with default settings, predict the
probability of yes for {rows:,} images. How far are these probabilities from calibrated?
"""

_READING = """\
The distance to calibration, the least mean change of the predictions that makes them calibrated,
lies between ldCE and udCE. smCE is within a factor of two of ldCE; intCE and SintCE bound it above.

Data: out-of-fold predictions (10 folds) on the test set of Optical Recognition of Handwritten
Digits, E. Alpaydin and C. Kaynak, UCI 1998, https://doi.org/10.24432/C50P49, licence CC BY 4.0.
"""


def demo_table(label: NDArray[np.int64], predictions: Mapping[str, Vector]) -> str:
    """Tabulate the measures of ``evaluate``, and the accuracy, of every model, best smCE first."""
    with doubts_said():  # a tree that is fully grown decides
        values = {name: evaluate(label, prediction) for name, prediction in predictions.items()}
    models = sorted(values, key=lambda name: values[name]["smooth_ce"].value)
    rows = [
        [
            measure.symbol,
            measure.name,
            *(number(values[model][measure.name].value) for model in models),
        ]
        for measure in shown_in("evaluate")
    ]
    accuracy = (np.mean((predictions[model] >= 0.5) == label) for model in models)
    rows.append(["", "accuracy", *(number(share) for share in accuracy)])
    return "\n".join(aligned(_headers(models) + rows, left={0, 1}))


def demo_text() -> str:
    """Return all that ``caldist demo`` prints: the question, the table, how to read it."""
    demo = load_demo()
    heading = _HEADING.format(models=len(demo.y_prob), rows=demo.y_true.size)
    return f"{heading}\n{demo_table(demo.y_true, demo.y_prob)}\n\n{_READING}"


def _headers(models: Sequence[str]) -> list[list[str]]:
    """Return the head of the table, with each model's name over as many lines as it has words."""
    words = [model.split("_") for model in models]
    height = max(len(name) for name in words)
    stacked = [[""] * (height - len(name)) + name for name in words]
    lines = [["", "", *line] for line in zip(*stacked, strict=True)]
    lines[-1][:2] = ["symbol", "measure"]
    return lines
