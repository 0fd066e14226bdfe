"""The certificate of several classes: potentials of every class below, a coupling above."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from caldist._util.types import Integers, Vector
from caldist.certificates._base import SLACK, Certificate, fail, vector
from caldist.certificates._lower import dual_bound

_COLUMNS = "n_classes"  # in a file, which holds vectors only


@dataclass(frozen=True, eq=False)
class ClassCertificate(Certificate):
    r"""A proof of bounds on the lower distance to calibration of several classes.

    Attributes
    ----------
    prediction, label, weight
        The rows: a matrix whose rows sum to 1, the number of each row's class, and weights.
    start, node, potential0, potential1
        Below: for class j, from ``start[j]`` up to ``start[j + 1]``, two functions that prove a
        lower bound of its binary lower distance, see
        :class:`caldist.certificates.LowerCertificate`. Half their sum bounds the distance of all
        classes: with a ∈ [0, 1]^k a coupling (v, u) with calibrated (u, y) makes
        (⟨a, v⟩, ⟨a, u⟩) one of the binary problem with cost \|⟨a, u - v⟩\|, and with the unit
        vectors for a these add up to 2 TV(u, v).
    row, group, share
        Above: the share of row ``row[i]`` that goes to the group ``group[i]``. The prediction of a
        group is the mean label that it receives, so the result is calibrated; its cost in total
        variation is ``upper``.

    Examples
    --------
    >>> from caldist import multiclass
    >>> y_prob = [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5], [0.5, 0.25, 0.25]]
    >>> proof = multiclass.certify([0, 2, 2, 1], y_prob)
    >>> proof.verify()
    <ClassCertificate: multiclass_distance is at least 0.187..., of 4 rows and 3 classes>
    >>> 0.16 < proof.lower < proof.upper < 0.3
    True
    """

    measure: ClassVar[str] = "multiclass_distance"

    prediction: Vector
    label: Integers
    weight: Vector
    start: Integers
    node: Vector
    potential0: Vector
    potential1: Vector
    row: Integers
    group: Integers
    share: Vector

    def __str__(self) -> str:
        """Say what is proved of how many rows and classes."""
        rows, classes = self.prediction.shape
        ends = f"at least {self.lower!r}, at most {self.upper!r}"
        return f"{self.measure} is {ends}, of {rows:,} rows and {classes} classes"

    def _lines(self) -> list[dict[str, Any]]:
        rows, classes = self.prediction.shape
        return [line | {"n_rows": rows, "n_classes": classes} for line in super()._lines()]

    def targets(self) -> Vector:
        """Return the calibrated prediction of each group, a row for each."""
        matrix, label, weight = self._rows()
        _, _, received, _ = self._groups(matrix.shape[1], label, weight)
        total = received.sum(axis=1, keepdims=True)
        return np.asarray(np.divide(received, total, out=np.zeros_like(received), where=total > 0))

    @classmethod
    def _members(cls) -> tuple[set[str], set[str]]:
        """Return the names of the arrays in a file, and the number of columns of the matrix."""
        must, may = super()._members()
        return must | {_COLUMNS}, may

    def _content(self) -> dict[str, Any]:
        """Return the arrays for a file, the matrix row by row."""
        matrix = np.asarray(self.prediction)
        columns = np.int64(matrix.shape[-1] if matrix.ndim else 0)
        return {**super()._content(), "prediction": matrix.ravel(), _COLUMNS: columns}

    @classmethod
    def _from_content(cls, content: dict[str, NDArray[Any]]) -> Self:
        """Make a certificate of what :meth:`_content` gave."""
        own = {name: array for name, array in content.items() if name != _COLUMNS}
        own["prediction"] = own["prediction"].reshape(-1, int(content[_COLUMNS]))
        return super()._from_content(own)

    def _rows(self) -> tuple[Vector, Integers, Vector]:
        """Return the rows, checked; the weights add up to 1."""
        matrix = self.prediction
        if type(matrix) is not np.ndarray or matrix.dtype != np.float64 or matrix.ndim != 2:
            fail("prediction is not a float64 matrix")
        n, k = matrix.shape
        if n == 0 or k < 2 or not ((matrix >= 0) & (matrix <= 1)).all():
            fail("prediction is not a matrix of probabilities")
        if not np.abs(matrix.sum(axis=1) - 1).max() <= SLACK:
            fail("the rows of prediction do not sum to 1")
        label = integers("label", self.label, n, k)
        weight = vector("weight", self.weight, n)
        if weight.min() < 0 or not 0 < weight.sum() < np.inf:
            fail("weight is negative, or 0 everywhere")
        return matrix, label, weight / weight.sum()

    def _prove_lower(self) -> float:
        matrix, label, weight = self._rows()
        k = matrix.shape[1]
        node = vector("node", self.node)
        zero = vector("potential0", self.potential0, node.size)
        one = vector("potential1", self.potential1, node.size)
        start = integers("start", self.start, k + 1, node.size + 1)
        if start[0] != 0 or start[-1] != node.size or not (np.diff(start) > 0).all():
            fail("start does not divide node among the classes")
        bound = 0.0
        for j in range(k):
            part = slice(int(start[j]), int(start[j + 1]))
            ones = np.where(label == j, weight, 0.0)
            dual = (node[part].copy(), zero[part].copy(), one[part].copy())
            bound += 0.5 * dual_bound(matrix[:, j], weight - ones, ones, *dual)
        return bound

    def _prove_upper(self) -> float:
        matrix, label, weight = self._rows()
        row, group, received, share = self._groups(matrix.shape[1], label, weight)
        sums = np.bincount(row, share, label.size)
        missing = float((weight * np.abs(sums - 1)).sum())
        if not np.abs(sums - 1).max() <= SLACK:
            fail("the shares of a row do not add up to 1")
        total = received.sum(axis=1, keepdims=True)
        target = np.divide(received, total, out=np.zeros_like(received), where=total > 0)
        cost = 0.0
        for at in range(0, row.size, 100_000):
            part = slice(at, at + 100_000)
            apart = np.abs(matrix[row[part]] - target[group[part]]).sum(axis=1)
            cost += 0.5 * float((weight[row[part]] * share[part] * apart).sum())
        return cost + missing

    def _groups(
        self, k: int, label: Integers, weight: Vector
    ) -> tuple[Integers, Integers, Vector, Vector]:
        """Return the triples, checked, and what the groups receive of each class."""
        share = vector("share", self.share)
        if share.min() < 0:
            fail("share is negative")
        row = integers("row", self.row, share.size, label.size)
        group = integers("group", self.group, share.size, share.size)
        count = int(group.max()) + 1
        mass = weight[row] * share
        received = np.bincount(group * k + label[row], mass, count * k).astype(np.float64)
        return row, group, received.reshape(count, k), share


def integers(name: str, values: object, size: int, below: int) -> NDArray[np.int64]:
    """Return a proof array of integers from 0 up to a bound."""
    if type(values) is not np.ndarray or values.dtype != np.int64 or values.shape != (size,):
        fail(f"{name} is not a vector of {size} integers")
    array: NDArray[np.int64] = values  # type: ignore[assignment]
    if array.size == 0 or array.min() < 0 or array.max() >= below:
        fail(f"{name} is not between 0 and {below - 1}")
    return array
