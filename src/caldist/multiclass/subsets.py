"""The set of classes whose joint probability is farthest from calibrated."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caldist._util.escaping import for_line
from caldist._util.results import Result
from caldist._util.types import Vector
from caldist.data.class_rows import Classes, ClassRows
from caldist.data.rows import Rows
from caldist.errors import answering
from caldist.measures.smooth_ce import smooth_ce as binary_smooth_ce

Members = NDArray[np.bool_]

_MOST = 12  # classes up to which all sets are tried
_WORK = 2 * 10**8  # rows times sets that are tried one by one
_GAIN = 1e-12  # what a change must gain


@dataclass(frozen=True)
class Subset(Result):
    """A set of classes and how far its joint probability is from calibrated.

    Attributes
    ----------
    classes
        The classes, at most half of them; with half, the first class is one of them.
    value
        smCE of their joint probability.
    exhaustive
        Whether all sets were tried, so that no other is worse.
    """

    classes: tuple[Any, ...]
    value: float
    exhaustive: bool

    def _lines(self) -> list[dict[str, Any]]:
        return [
            {"class": name, "value": self.value, "exhaustive": self.exhaustive}
            for name in self.classes
        ]

    def __str__(self) -> str:
        found = "of all sets" if self.exhaustive else "that was found"
        listed = for_line(", ".join(str(name) for name in self.classes))
        return f"The worst set of classes {found} is {{{listed}}}: smCE {self.value:.4g}."


@answering
def worst_subset(
    y_true: ArrayLike,
    y_prob: ArrayLike | None = None,
    *,
    classes: Classes | None = None,
    normalize: bool = False,
    sample_weight: ArrayLike | None = None,
) -> Subset:
    r"""Return the set of classes whose joint probability is worst calibrated.

    .. math:: \max_S \mathrm{smCE}\bigl(\textstyle\sum_{j \in S} v_j,\; 1[y \in S]\bigr)

    **What it means.** Who adds up the probabilities of some classes ("any cancer", "a vehicle")
    meets at most this error. A set and the rest have the same error, so the smaller one is named.
    It is at most twice the distance to calibration in total variation; like all projections it
    does not see rotations. With two classes it is :func:`caldist.smooth_ce`.

    **What it estimates.** The sample's value; the maximum over many sets is biased upwards.

    **Cost.** A sort for each set: all :math:`2^{k-1} - 1` of them up to 12 classes, and beyond, or
    with very many rows, a search that puts single classes in and out, from four starts.

    Parameters
    ----------
    y_true : array-like of classes
        Numbers 0, 1, …, or names listed in ``classes``.
    y_prob : matrix
        A row per example and a column per class, rows summing to 1.
    classes : sequence, optional
        The labels in the order of the columns, where they are not 0, 1, … or the names of a
        frame's columns.
    normalize : bool
        Divide each row by its sum, where rounding keeps rows from summing to 1.
    sample_weight : array-like, optional

    Returns
    -------
    Subset

    Examples
    --------
    >>> from caldist import multiclass
    >>> y_prob = [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5], [0.5, 0.25, 0.25]]
    >>> print(multiclass.worst_subset([0, 2, 2, 1], y_prob))
    The worst set of classes of all sets is {2}: smCE 0.1875.
    """
    rows = ClassRows.of(
        y_true, y_prob, classes=classes, normalize=normalize, sample_weight=sample_weight
    )
    k = rows.n_classes
    search = _Search(rows)
    exhaustive = k <= _MOST and 2 ** (k - 1) * rows.n_rows <= _WORK
    if exhaustive:
        for members in _all_sets(k):
            search.try_set(members)
    else:
        for start in _starts(rows, search):
            search.climb(start)
    members = search.best
    size = int(members.sum())
    if 2 * size > k or (2 * size == k and not members[0]):
        members = ~members
    names = tuple(name for name, inside in zip(rows.names, members, strict=True) if inside)
    return Subset(names, search.value, exhaustive)


class _Search:
    """Sets that were tried, and the worst of them."""

    def __init__(self, rows: ClassRows) -> None:
        self.rows = rows
        self.known: dict[bytes, float] = {}
        self.value = -1.0
        self.best: Members = np.zeros(rows.n_classes, dtype=bool)

    def try_set(self, members: Members) -> float:
        key = (members if members[0] else ~members).tobytes()
        if key not in self.known:
            self.known[key] = value = self._evaluate(members)
            if value > self.value + _GAIN:
                self.value, self.best = value, members.copy()
        return self.known[key]

    def _evaluate(self, members: Members) -> float:
        rows = self.rows
        label = members[rows.label].view(np.uint8)
        return binary_smooth_ce(Rows(label, self._sum(members), rows.weight).joint)

    def _sum(self, members: Members) -> Vector:
        total = self.rows.dense[:, members].sum(axis=1)
        return np.asarray(np.minimum(total, 1.0))

    def climb(self, members: Members) -> None:
        """Put single classes in or out while that makes it worse."""
        value, improved = self.try_set(members), True
        while improved:
            improved = False
            for j in range(members.size):
                changed = members.copy()
                changed[j] = not changed[j]
                if changed.all() or not changed.any():
                    continue
                if (found := self.try_set(changed)) > value + _GAIN:
                    members, value, improved = changed, found, True


def _all_sets(k: int) -> Iterator[Members]:
    """Give one of each set and its complement."""
    for code in range(1, 2 ** (k - 1)):
        yield np.array([0, *((code >> j) & 1 for j in range(k - 1))], dtype=bool)


def _starts(rows: ClassRows, search: _Search) -> Iterator[Members]:
    k = rows.n_classes
    single = np.eye(k, dtype=bool)
    worst = int(np.argmax([search.try_set(one) for one in single]))
    yield single[worst]
    rng = np.random.default_rng(0)
    for members in (rows.mean_residual > 0, rng.random(k) < 0.5, rng.random(k) < 0.5):
        if members.any() and not members.all():
            yield members
