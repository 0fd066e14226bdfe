"""How often the limits for several classes miss: laws of three to a hundred classes, and of two.

A law draws the probabilities P that labels follow, and says what a model predicts for them. So the
population's classwise distance is that of many draws with P in place of labels.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from caldist import Joint, multiclass
from caldist.measures.lower_distance import certify_lower
from studies.laws import stream
from studies.pages import FAIL, percent, table

__all__ = [
    "CLASSES",
    "FULL",
    "LAWS",
    "ROWS",
    "Law",
    "Plan",
    "cells",
    "limits_cell",
    "page",
    "truth",
]

Matrix = NDArray[np.float64]
Row = dict[str, str]

CLASSES = (2, 3, 10, 100)
ROWS = (500, 2_000)
ALLOWED = 1.5  # times the nominal rate
_ATOMS = {2: 50_000, 3: 50_000, 10: 20_000, 100: 4_000}

_PAGE = """\
# Limits for several classes

How often the ends of `multiclass.confidence_interval` at {level}% miss the population's classwise
distance; each end may miss in {nominal}% of the data sets. A cell fails if one does in more than
{allowed} times that, by more than two standard errors.

{held}
- {plan.data_sets} data sets a cell, {plan.many_classes} with 100 classes; seed {plan.seed}.
- Run again: `{command}`.

"""


@dataclass(frozen=True)
class Plan:
    """How much is computed."""

    data_sets: int = 400
    many_classes: int = 100  # data sets with a hundred classes
    level: float = 0.9
    seed: int = 0


FULL = Plan()


@dataclass(frozen=True)
class Law:
    """A distribution of probabilities and predictions.

    Attributes
    ----------
    text
        What it is.
    scale
        The standard deviation of the logits, for two or three classes; others have twice that.
    tilt
        How much smaller the logit of the last class is than that of the first.
    predict
        From the probabilities that labels follow to those that a model predicts.
    atoms
        Of how many different rows of probabilities one is drawn; 0 for all different.
    """

    text: str
    predict: Callable[[Matrix], Matrix]
    scale: float = 1.5
    tilt: float = 0.0
    atoms: int = 0

    def draw(self, n: int, k: int, rng: np.random.Generator) -> tuple[Matrix, Matrix]:
        """Return the probabilities that labels follow, and the predictions, of n rows."""
        size = self.atoms or n
        source = np.random.default_rng(1) if self.atoms else rng
        scale = self.scale * (1 if k <= 3 else 2)
        logits = scale * source.normal(size=(size, k)) - np.linspace(0, self.tilt, k)
        truth = _normalised(np.exp(logits - logits.max(axis=1, keepdims=True)))
        if self.atoms:
            truth = truth[rng.integers(0, size, n)]
        return truth, self.predict(truth)


def _normalised(matrix: Matrix) -> Matrix:
    return np.asarray(matrix / matrix.sum(axis=1, keepdims=True))


def same(truth: Matrix) -> Matrix:
    """Predict what labels follow."""
    return truth


def temperature(power: float) -> Callable[[Matrix], Matrix]:
    """Predict powers of the probabilities: above 1 too sharp, below 1 too flat."""
    return lambda truth: _normalised(truth**power)


def inflated(truth: Matrix) -> Matrix:
    """Predict the first class 1.6 times as likely."""
    matrix = truth.copy()
    matrix[:, 0] *= 1.6
    return _normalised(matrix)


def turned(truth: Matrix) -> Matrix:
    """Mix in the probabilities of the next class."""
    return np.asarray(0.8 * truth + 0.2 * np.roll(truth, 1, axis=1))


LAWS = {
    "calibrated": Law("calibrated softmax", same),
    "peaked": Law("calibrated, most predictions near certain", same, scale=4.0),
    "rare": Law("calibrated, the last classes rare", same, tilt=6.0),
    "tied": Law("calibrated, twenty different rows", same, atoms=20),
    "flat": Law("calibrated, nearly the same for all rows", same, scale=0.2),
    "mild": Law("a little too sharp, power 1.3", temperature(1.3)),
    "sharp": Law("too sharp, power 2", temperature(2.0)),
    "dull": Law("too flat, power 0.6", temperature(0.6)),
    "inflated": Law("the first class 1.6 times as likely", inflated),
    "turned": Law("a fifth of the next class mixed in", turned),
    "sharp, tied": Law("too sharp, twenty different rows", temperature(2.0), atoms=20),
}


@cache
def truth(law: str, k: int) -> float:
    """Return the population's classwise distance."""
    if LAWS[law].predict is same:
        return 0.0
    follow, predicted = LAWS[law].draw(_ATOMS[k], k, stream(0, "population", law, k))
    columns = range(1, 2) if k == 2 else range(k)
    parts = []
    for j in columns:
        v = predicted[:, j].clip(0, 1)
        joint = Joint.from_masses(v, 1 - follow[:, j], follow[:, j])
        parts.append(certify_lower(joint, tol=1e-5).lower)
    return (1.0 if k == 2 else 0.5) * math.fsum(parts)


def cells(
    rows: Sequence[int] = ROWS, classes: Sequence[int] = CLASSES
) -> list[tuple[str, int, int]]:
    """Return all laws, numbers of classes and numbers of rows."""
    return [(law, k, n) for law in LAWS for k in classes for n in rows]


def limits_cell(law: str, k: int, n: int, *, plan: Plan) -> list[Row]:
    """Count on which side intervals miss the population's classwise distance."""
    value = truth(law, k)
    sets = plan.data_sets if k < 100 else plan.many_classes
    below = above = 0
    ends = []
    for number in range(sets):
        rng = stream(plan.seed, law, k, n, number)
        follow, predicted = LAWS[law].draw(n, k, rng)
        y_true = (rng.random(n)[:, None] > follow.cumsum(axis=1)).sum(axis=1).clip(0, k - 1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            interval = multiclass.confidence_interval(
                y_true, predicted, confidence_level=plan.level, rng=rng
            )
        below += interval.lower > value + 1e-9
        above += interval.upper < value - 1e-9
        ends.append((interval.value, interval.lower, interval.upper))
    means = np.mean(ends, axis=0)
    return [
        {
            "law": law,
            "classes": str(k),
            "rows": str(n),
            "data_sets": str(sets),
            "truth": f"{value:.5f}",
            "value": f"{means[0]:.5f}",
            "lower": f"{means[1]:.5f}",
            "upper": f"{means[2]:.5f}",
            "lower_misses": f"{below / sets:.4f}",
            "upper_misses": f"{above / sets:.4f}",
        }
    ]


def passes(row: Row, plan: Plan) -> bool:
    """Whether misses on both sides are at most 1.5 times nominal, within two standard errors."""
    nominal = (1 - plan.level) / 2
    allowed = ALLOWED * nominal
    error = math.sqrt(allowed * (1 - allowed) / int(row["data_sets"]))
    worst = max(float(row["lower_misses"]), float(row["upper_misses"]))
    return worst <= allowed + 2 * error


def page(rows: Sequence[Row], plan: Plan, command: str) -> str:
    """Return the page on the limits of several classes."""
    failed = [row for row in rows if not passes(row, plan)]
    nominal = (1 - plan.level) / 2
    held = f"- {len(rows) - len(failed)} of {len(rows)} cells hold"
    lines: list[str] = _PAGE.format(
        level=f"{100 * plan.level:g}",
        nominal=percent(nominal),
        allowed=f"{ALLOWED:g}",
        held=f"{held}; {FAIL} in the others." if failed else f"{held}.",
        plan=plan,
        command=command,
    ).splitlines()
    for name, law in LAWS.items():
        chosen = [row for row in rows if row["law"] == name]
        if not chosen:
            continue
        lines += [f"## {name}", "", f"{law.text[0].upper()}{law.text[1:]}.", ""]
        header = ("classes", "rows", "truth", "mean value", "mean lower", "mean upper")
        header = (*header, "lower misses, %", "upper misses, %", "")
        lines += table(
            header,
            [
                (
                    row["classes"], row["rows"], row["truth"], row["value"], row["lower"],
                    row["upper"], percent(row["lower_misses"]), percent(row["upper_misses"]),
                    "holds" if passes(row, plan) else FAIL,
                )
                for row in chosen
            ],
        )  # fmt: skip
    return "\n".join(lines).rstrip() + "\n"
