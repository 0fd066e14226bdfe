"""The kernel calibration error of several classes, kCE_k."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caldist._util.types import Integers, Vector
from caldist.data import validate
from caldist.data.class_rows import Classes, ClassRows
from caldist.errors import InvalidInput, answering
from caldist.measures.kernel_ce import kernel_ce as binary_kernel_ce

Kernel = Literal["laplace", "gaussian"]
Structure = Literal["full", "classwise"]
Method = Literal["exact", "binning"]

N_DRAWS = 100
_BLOCK = 500_000  # entries of a kernel matrix at once


@answering
def kernel_ce(
    y_true: ArrayLike,
    y_prob: ArrayLike | None = None,
    *,
    kernel: Kernel = "laplace",
    bandwidth: float = 1.0,
    structure: Structure = "full",
    method: Method = "exact",
    squared: bool = False,
    unbiased: bool = False,
    n_draws: int | None = None,
    classes: Classes | None = None,
    normalize: bool = False,
    sample_weight: ArrayLike | None = None,
    rng: validate.Rng = 0,
) -> float:
    r"""Return the kernel calibration error of several classes.

    .. math::

        \mathrm{kCE}_k^2 = \tfrac12 E\,\langle y - v,\, y' - v' \rangle\, e^{-TV(v, v')/h}

    for two independent rows, y being 1 at the true class and 0 at the others. With
    ``structure="classwise"`` it is :math:`\tfrac12 \sum_j \mathrm{kCE}_j^2` over each class against
    the rest, with its own probability in the kernel.

    **What it means.** The full one is 0 only for calibrated predictions, and
    :math:`\mathrm{kCE}_k^2 \le \mathrm{smCE}_k \le 2\,\mathrm{ldCE}_k` at bandwidth 1, for any
    number of classes. No bound from below holds for all numbers of classes. The classwise one does
    not see errors that cancel in every class. With two classes both are
    :func:`caldist.kernel_ce`. At bandwidth 1 it mostly sees the frequencies of the classes; for
    tests 0.1 to 0.2 is better.

    **What it estimates.** The population's value, at rate 1/√n, with an upward bias that
    ``unbiased=True`` takes off the square.

    **Cost.** Full and exact O(n² k) in blocks of bounded memory; by random binning O(n k) for each
    draw. Classwise O(k n log n).

    Parameters
    ----------
    y_true : array-like of classes
        Numbers 0, 1, …, or names listed in ``classes``.
    y_prob : matrix
        A row per example and a column per class, rows summing to 1.
    kernel : "laplace" or "gaussian"
        The Gaussian kernel goes with ``structure="classwise"`` only: of total variation distances
        it is not positive definite.
    bandwidth : float
        h above.
    structure : "full" or "classwise"
    method : "exact" or "binning"
        Random binning (Rahimi and Recht 2007) averages over random grids: rows count as equal if
        they share a cell, which happens with probability K(v, v'). It is unbiased for the square.
    squared : bool
        Return the square, on which ``unbiased`` and binning are unbiased.
    unbiased : bool
        Leave out the pairs of a row with itself. The square may then be negative, and its root is
        taken as 0.
    n_draws : int, optional
        How many grids are drawn for binning; 100 by default.
    classes : sequence, optional
        The labels in the order of the columns, where they are not 0, 1, … or the names of a
        frame's columns.
    normalize : bool
        Divide each row by its sum, where rounding keeps rows from summing to 1.
    sample_weight : array-like, optional
        Not with ``unbiased=True``.
    rng : int, numpy.random.Generator or None
        For binning. The same rows give the same answer; None draws a fresh seed.

    Returns
    -------
    float

    Examples
    --------
    >>> from caldist import multiclass
    >>> y_prob = [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5], [0.5, 0.25, 0.25]]
    >>> round(multiclass.kernel_ce([0, 2, 2, 1], y_prob), 4)
    0.1827
    >>> round(multiclass.kernel_ce([0, 2, 2, 1], y_prob, structure="classwise"), 4)
    0.1654
    """
    validate.check_choice("kernel", kernel, ("laplace", "gaussian"))
    validate.check_choice("structure", structure, ("full", "classwise"))
    validate.check_choice("method", method, ("exact", "binning"))
    if kernel == "gaussian":
        validate.check_goes_with("kernel", kernel, "structure", structure, ("classwise",))
    if method == "binning":
        validate.check_goes_with("method", method, "structure", structure, ("full",))
    bandwidth = validate.check_positive("bandwidth", bandwidth)
    squared = validate.check_flag("squared", squared)
    unbiased = validate.check_flag("unbiased", unbiased)
    if n_draws is not None:
        validate.check_goes_with("n_draws", n_draws, "method", method, ("binning",))
        n_draws = validate.check_count("n_draws", n_draws)
    generator = validate.generator(rng)
    rows = ClassRows.of(
        y_true, y_prob, classes=classes, normalize=normalize, sample_weight=sample_weight
    )
    if unbiased and rows.weight is not None:
        raise InvalidInput(
            argument="unbiased",
            value=True,
            reason="it is for rows without weights",
            remedy="Leave sample_weight out.",
        )
    if unbiased and rows.n_rows < 2:
        reason = "has 1 row, but unbiased=True needs at least two"
        raise InvalidInput(argument="y_prob", reason=reason)
    if method == "exact" and (structure == "classwise" or rows.n_classes == 2):
        problems = [rows.binary] * 2 if rows.n_classes == 2 else rows.problems()
        value = 0.5 * math.fsum(
            binary_kernel_ce(
                part.joint, kernel=kernel, bandwidth=bandwidth, squared=True, unbiased=unbiased
            )
            for part in problems
        )
    else:
        if method == "exact":
            value = _dense(rows, bandwidth)
        else:
            value = _binned(rows, bandwidth, n_draws or N_DRAWS, generator)
        if unbiased:
            own = 0.5 * float(_squares(rows).sum())
            n = rows.n_rows
            value = (n * n * value - own) / (n * (n - 1))
    return value if squared else math.sqrt(max(0.0, value))


def _squares(rows: ClassRows) -> Vector:
    """Return ‖y - v‖² of each row."""
    dense = rows.dense
    return np.asarray(np.einsum("ij,ij->i", dense, dense) + 1 - 2 * rows.own)


def _dense(rows: ClassRows, bandwidth: float) -> float:
    from scipy.spatial.distance import cdist  # slow to import

    dense = rows.dense
    residual = dense * -rows.share[:, None]
    residual[np.arange(rows.n_rows), rows.label] += rows.share
    step = max(1, _BLOCK // rows.n_rows)
    total = 0.0
    for start in range(0, rows.n_rows, step):
        part = slice(start, start + step)
        kernel = np.exp(cdist(dense[part], dense[start:], "cityblock") * (-0.5 / bandwidth))
        # Pairs with later rows count twice.
        against = kernel @ residual[start:]
        size = against.shape[0]
        inside = kernel[:, :size] @ residual[part]
        total += float(np.vdot(2 * against - inside, residual[part]))
    return 0.5 * total


def _binned(rows: ClassRows, bandwidth: float, n_draws: int, rng: np.random.Generator) -> float:
    total = 0.0
    for _ in range(n_draws):
        cell, count = random_cells(rows, bandwidth, rng)
        received = np.bincount(
            cell * rows.n_classes + rows.label, rows.share, count * rows.n_classes
        )
        sums = received.reshape(count, rows.n_classes)
        for j, prediction in enumerate(rows.columns()):
            sums[:, j] -= np.bincount(cell, rows.share * prediction, count)
        total += 0.5 * float(np.vdot(sums, sums))
    return total / n_draws


def random_cells(
    rows: ClassRows, bandwidth: float, rng: np.random.Generator
) -> tuple[Integers, int]:
    """Return the cell of each row in a random grid, and how many there are.

    Two rows share a cell with probability exp(-TV/h): in each class, with width Gamma(2, 2h) and a
    uniform shift, with probability exp(-|v_j - v'_j|/2h). Cells are told apart by a mix of 64 bits.
    """
    width = rng.gamma(2.0, 2 * bandwidth, rows.n_classes)
    shift = rng.random(rows.n_classes) * width
    mixed = np.full(rows.n_rows, 0x2545F4914F6CDD1D, dtype=np.uint64)
    for j, prediction in enumerate(rows.columns()):
        # The number of cells along [0, 1] is bounded so that small bandwidths stay integers.
        number = np.minimum(np.floor((prediction + shift[j]) / width[j]), 2.0**52)
        mixed = _mix(mixed, number.astype(np.uint64))
    _, cell = np.unique(mixed, return_inverse=True)
    return cell, int(cell.max()) + 1


def _mix(state: NDArray[np.uint64], part: NDArray[np.uint64]) -> NDArray[np.uint64]:
    state = (state ^ part) * np.uint64(0x9E3779B97F4A7C15)
    return state ^ (state >> np.uint64(29))
