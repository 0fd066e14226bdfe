"""Brackets of six models of handwritten digits: how wide they are, of rows and of populations."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.tables import Table, number, verdict
from caldist import multiclass

_QUICK_MODELS, _QUICK_ROWS = ("naive Bayes", "tree"), 200
_LEVEL = 0.9  # 95% for each end

# How far apart the ends may be: upper/lower for the rows, upper less lower for the population.
TARGETS = {
    "naive Bayes": (1.24, 0.078),
    "random forest": (1.72, 0.135),
    "nearest neighbours": (1.75, 0.031),
    "tree": (2.1, 0.138),
    "neural network": (2.9, 0.034),
    "logistic regression": (3.1, 0.046),
}


def _models() -> dict[str, Any]:
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.tree import DecisionTreeClassifier

    network = MLPClassifier((64,), max_iter=200, random_state=0)
    return {
        "naive Bayes": GaussianNB(),
        "random forest": RandomForestClassifier(random_state=0),
        "nearest neighbours": KNeighborsClassifier(10),
        "tree": DecisionTreeClassifier(min_samples_leaf=5, random_state=0),
        "neural network": make_pipeline(StandardScaler(), network),
        "logistic regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1_000)),
    }


def predictions(model: Any, rows: int | None) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return digits, and what a model predicts that has not seen them: five folds."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    images, digit = load_digits(return_X_y=True)
    images, digit = images[:rows], digit[:rows]
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    found = cross_val_predict(model, images, digit, cv=folds, method="predict_proba")
    return digit, np.asarray(found)


def digits_table(*, quick: bool) -> Table:
    """Lay out a row for each model."""
    lines = []
    for name, model in _models().items():
        if quick and name not in _QUICK_MODELS:
            continue
        y_true, y_prob = predictions(model, _QUICK_ROWS if quick else None)
        rows = multiclass.distance_bracket(y_true, y_prob)
        population = multiclass.confidence_interval(
            y_true, y_prob, measure="distance", confidence_level=_LEVEL
        )
        ratio, width = TARGETS[name]
        kept = rows.upper <= ratio * rows.lower
        narrow = population.upper - population.lower <= width
        lines.append(
            [
                name,
                number(float((y_prob.argmax(axis=1) == y_true).mean())),
                number(multiclass.classwise_distance(y_true, y_prob)),
                number(multiclass.smooth_ce(y_true, y_prob)),
                f"{rows.lower:.4f} to {rows.upper:.4f}",
                number(rows.upper / rows.lower),
                f"{ratio:g}",
                "" if quick else verdict(kept),
                f"{population.lower:.4f} to {population.upper:.4f}",
                number(population.upper - population.lower),
                f"{width:g}",
                "" if quick else verdict(narrow),
            ]
        )
    header = ["model", "accuracy", "classwise", "smooth"]
    header += ["rows", "upper/lower", "target", "verdict"]
    header += ["population", "width", "target", "verdict"]
    note = (
        "Brackets of the distance of ten classes on scikit-learn's digits, 1,797 rows predicted in "
        "five folds: of these rows, and of the population with 95% confidence for each end. The "
        "targets of the population are those of the least of five limits, each at the full level; "
        "here two share it."
    )
    return Table("Six models of digits", header, lines, note)
