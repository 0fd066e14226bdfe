"""Scores that are probabilities by their values and hardly by their meaning."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from caldist._util.products import dot
from caldist._util.warning import warn
from caldist.data.joint import Joint
from caldist.data.rows import Rows

_LEAST = 50  # rows; fewer are examples
_LEAST_OF_EACH = 10  # rows of either label
_ERRORS = 4  # standard errors, at most: by chance once in 30,000 times
_BITS = 14

_DECISIONS = (
    "the scores are only 0 and 1, as decisions are: probabilities are needed, for example "
    "predict_proba(…)[:, 1]."
)
_BACKWARDS = (
    "the scores rank backwards: rows of label 1 tend to have the lower ones (AUC {:.2f}). Are they "
    "probabilities of the other label? Take 1 - score, or the other label for 1."
)


class DoubtfulScoresWarning(UserWarning):
    """What is measured may be right, and is hardly what was meant."""


def doubts_of(rows: Rows) -> list[str]:
    r"""Return what looks wrong about scores, in words.

    Three mistakes leave every value between 0 and 1, so that no check sees them: labels in place of
    scores, decisions 0 and 1, and the probability of the other label. The last one shows in the
    area under the ROC curve. Its standard error is at most :math:`\sqrt{A(1 - A)/m}` with
    :math:`m` rows of the rarer label, whatever the law (van Dantzig 1951); clusters are not
    considered, which four standard errors leave some room for. Rows are not sorted for it: a grid
    does, on which pairs in one cell count as those that are in order.

    Cost: one pass.
    """
    joint = rows.joint if rows.is_summary or "joint" in vars(rows) else _on_grid(rows)
    if joint.n_rows is None or joint.n_rows < _LEAST:
        return []
    if _is_hard(rows):
        if _are_labels(joint):
            return ["the scores are the labels: they are equal in every row."]
        return [_DECISIONS]
    area = _surely_backwards(joint)
    if area is None:
        return []
    return [_BACKWARDS.format(area)]


def _on_grid(rows: Rows) -> Joint:
    weight = rows.weight
    if weight is not None:  # whose squares may be too large for a double
        rows = Rows(rows.label, rows.prediction, weight / weight.max())
    return rows.on_grid(_BITS)


def warn_about(rows: Rows) -> None:
    """Warn of what looks wrong about scores."""
    for doubt in doubts_of(rows):
        warn(doubt, DoubtfulScoresWarning)


@contextmanager
def doubts_said() -> Iterator[None]:
    """Be silent about doubts that were said already."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DoubtfulScoresWarning)
        yield


def _is_hard(rows: Rows) -> bool:
    values = rows.joint.prediction if rows.is_summary else rows.prediction
    # Nearly all columns show in their first values that they are not.
    return all(bool(((part == 0) | (part == 1)).all()) for part in (values[:100], values))


def _are_labels(joint: Joint) -> bool:
    wrong = dot(joint.mass1, 1 - joint.prediction) + dot(joint.mass0, joint.prediction)
    return bool(wrong == 0 and joint.mass0.any() and joint.mass1.any())


def _surely_backwards(joint: Joint) -> float | None:
    """Return the area under the ROC curve if it is below one half, and not by chance."""
    zeros, ones = (_rows_of(joint, label) for label in (0, 1))
    if min(zeros, ones) < _LEAST_OF_EACH:
        return None
    mass0 = joint.mass0 / joint.mass0.sum()
    mass1 = joint.mass1 / joint.mass1.sum()
    tied = dot(mass0, mass1)
    area = dot(mass1, np.cumsum(mass0) - mass0) + tied / 2
    # Cells may hide pairs that are in order; of exact predictions ties are ties.
    most = area + (tied / 2 if joint.grid is not None else 0.0)
    error = math.sqrt(max(most * (1 - most), 0.0) / min(zeros, ones))
    return area if most + _ERRORS * error < 0.5 else None


def _rows_of(joint: Joint, label: int) -> float:
    """Return how many rows of equal weight have a label."""
    mass = float((joint.mass1 if label else joint.mass0).sum())
    if joint.counts_rows or mass == 0:
        return mass
    squares = joint.weight_square1 if label else joint.weight_square0
    total = 0.0 if squares is None else float(squares.sum())
    return mass * mass / total if total > 0 else 0.0  # 0 where it is not known, or underflows
