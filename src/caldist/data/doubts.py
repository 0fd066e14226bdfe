"""What is valid and hardly meant: scores that are no probabilities, rows that repeat."""

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


_IN_RUNS = (
    "neighbouring rows have equal scores and labels in runs, as rows {:,} to {:,}, counted from 0: "
    "far more than independent rows. Intervals and tests take rows as independent: pass clusters "
    "to them if rows belong together, as those of a patient or a game, or keep one row of each."
)
_HEAD = 2**17  # rows, at most, in which runs are looked for
_SPLIT = 2 / 3  # of independent rows it is 1/3; orders that tell something of labels have room
_CHANCE = 1e-6


class DoubtfulScoresWarning(UserWarning):
    """What is measured may be right, and is hardly what was meant."""


def doubts_of(rows: Rows) -> list[str]:
    """Return what looks wrong about scores, and about the independence of rows, in words."""
    return [*_of_scores(rows), *_of_runs(rows)]


def _of_scores(rows: Rows) -> list[str]:
    r"""Return what looks wrong about scores.

    Three mistakes leave every value between 0 and 1, so that no check sees them: labels in place of
    scores, decisions 0 and 1, and the probability of the other label. The last one shows in the
    area under the ROC curve. Its standard error is at most :math:`\sqrt{A(1 - A)/m}` with
    :math:`m` rows of the rarer label, whatever the law (van Dantzig 1951); clusters are not
    considered, which four standard errors leave some room for. Rows are not sorted for it: a grid
    does, on which pairs in one cell count as those that are in order.

    Cost: one pass.
    """
    joint = rows.joint if rows.is_summary or "joint" in vars(rows) else _round_to_grid(rows)
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


def _of_runs(rows: Rows) -> list[str]:
    r"""Return whether runs of equal scores have equal labels, in more cases than chance explains.

    A run is a stretch of neighbouring rows with one score. Take two runs of nearly the same score,
    and of each the first and the last label. If two of these four are 1 and rows are independent,
    the two are of the same run with probability 1/3, however rare label 1 and whatever the scores:
    all arrangements of four labels are equally likely. Runs that are copies of one row have it
    always. The Chernoff bound says how likely so many cases would be at twice that probability.

    Orders of a file must not look like copies. Sorted scores make runs, so that a run counts only
    where both neighbours have smaller, or both larger scores. Sorted labels make equal labels, so
    that only runs are compared whose neighbours have the same label, both times the same one: in a
    block of one label nothing is left to compare. First and last label of a run whose labels are
    sorted differ.

    Not seen: runs within longer stretches of one label.

    Cost: one pass over the first rows, and a sort of their runs.
    """
    if rows.is_summary or rows.cluster is not None or (rows.n_rows or 0) < _LEAST:
        return []
    prediction, label = rows.prediction[:_HEAD], rows.label[:_HEAD]
    first = np.flatnonzero(np.append(True, prediction[1:] != prediction[:-1]))
    last = np.append(first[1:], prediction.size) - 1
    inside = (last > first) & (first > 0) & (last < prediction.size - 1)
    first, last = first[inside], last[inside]
    before, after = prediction[first - 1], prediction[last + 1]
    middle, context = prediction[first], label[first - 1]
    alike = ((before < middle) == (after < middle)) & (context == label[last + 1])
    order = np.lexsort((middle[alike], context[alike]))[: alike.sum() // 2 * 2]
    first, last, context = (
        values[alike][order].reshape(-1, 2) for values in (first, last, context)
    )
    ones = label[first].astype(np.int64) + label[last]
    told = (context[:, 0] == context[:, 1]) & (ones.sum(axis=1) == 2)
    number, split = int(told.sum()), int((told & (ones[:, 0] != 1)).sum())
    if not _is_surely_above(split, number, _SPLIT):
        return []
    at = int(np.flatnonzero(told & (ones[:, 0] != 1))[0])
    return [_IN_RUNS.format(int(first[at, 0]), int(last[at, 0]))]


def _is_surely_above(count: int, number: int, share: float) -> bool:
    """Return whether so many of a number are out of reach of a binomial share (Chernoff bound)."""
    found = count / number if number else 0.0
    if found <= share:
        return False
    rest = (1 - found) * math.log((1 - found) / (1 - share)) if found < 1 else 0.0
    return number * (found * math.log(found / share) + rest) > -math.log(_CHANCE)


def _round_to_grid(rows: Rows) -> Joint:
    weight = rows.weight
    if weight is not None:  # whose squares may be too large for a double
        rows = Rows(rows.label, rows.prediction, weight / weight.max())
    return rows.round_to_grid(_BITS)


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
