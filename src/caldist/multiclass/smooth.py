r"""The smooth calibration error of several classes, smCE_k: exact, or enclosed by landmarks.

Notation: c_j the residual masses y_j - v_j of class j, T_j their sum. The simplex has diameter 1,
so it never pays to leave mass unmatched on both sides, and

    sup_w Σ c_j w = |T_j| + P_j,

P_j the least cost, in total variation, of carrying the smaller one of c_j⁺ and c_j⁻ into the larger
one. Its dual potentials p make a witness, sign(T_j) min(1, min_m 1 - p_m + TV(v, u_m)).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from caldist._util.threads import in_threads
from caldist._util.types import Integers, Vector
from caldist.data import validate
from caldist.data.class_rows import Classes, ClassRows, sums_by
from caldist.errors import ToleranceError, answering
from caldist.kernels.loader import flow, simplex
from caldist.measures.smooth_ce import smooth_ce as binary_smooth_ce

Method = Literal["auto", "exact", "landmarks"]

EXACT_ROWS = 5_000  # different predictions up to which the transports are solved as they are
LANDMARKS = 800
_REDUCED_COST = 1e-12  # arcs that gain less than this are left alone
_NEVER = 4.0  # a height above all that a function between -1 and 1 can feel
_CHUNK = 2_048  # rows that a thread takes at once


@dataclass(frozen=True, eq=False)
class Witnesses:
    """A function on the simplex for each class, 1-Lipschitz and between -1 and 1 by its form.

    f_j(v) = sign_j max(-1, min(1, min_m height[m, j] + TV(v, centre[m]))).
    """

    centre: Vector
    height: Vector
    sign: Vector

    def __call__(self, prediction: Vector) -> Vector:
        """Evaluate all functions at rows of probabilities."""
        values = np.empty((prediction.shape[0], self.sign.size))
        centre = np.ascontiguousarray(self.centre.T)

        def work(rows: slice) -> None:
            simplex.lipschitz(prediction[rows], centre, self.height, values[rows])

        in_chunks(work, prediction.shape[0])
        values *= self.sign
        return values


@dataclass(frozen=True, eq=False)
class SmoothBounds:
    """Bounds of the supremum of each class, |T_j| + P_j; smCE_k is half their sum.

    ``witnesses`` attain ``lower``.
    """

    total: Vector
    lower: Vector
    upper: Vector
    witnesses: Witnesses

    @property
    def ends(self) -> tuple[float, float]:
        """The bounds of smCE_k."""
        lower, upper = 0.5 * float(self.lower.sum()), 0.5 * float(self.upper.sum())
        return min(lower, upper), upper


@answering
def smooth_ce(
    y_true: ArrayLike,
    y_prob: ArrayLike | None = None,
    *,
    method: Method = "auto",
    landmarks: int | None = None,
    tol: float | None = None,
    classes: Classes | None = None,
    normalize: bool = False,
    sample_weight: ArrayLike | None = None,
    rng: validate.Rng = 0,
) -> float:
    r"""Return the smooth calibration error of several classes.

    .. math:: \mathrm{smCE}_k = \tfrac12 \sum_j \sup_w E[w(v)\,(1[y = j] - v_j)]

    over functions w of the whole row of probabilities with values in [-1, 1] that are 1-Lipschitz
    in total variation; each class has a function of its own.

    **What it means.** It bounds the lower distance to calibration in total variation from both
    sides, with the same constants for any number of classes:
    :math:`\tfrac12 \mathrm{ldCE}_k \le \mathrm{smCE}_k \le 2\,\mathrm{ldCE}_k`. Unlike the
    classwise distance it sees every miscalibration. With two classes it is
    :func:`caldist.smooth_ce`.

    **What it estimates.** On samples of more than about five classes mostly noise: on calibrated
    predictions with ten classes it falls only like :math:`n^{-1/4}`.

    **Cost.** k transport problems, solved by a network simplex: a second at 2,000 rows, some at
    5,000. Beyond, rows are moved to landmarks; that gives a certified interval at O(n · landmarks
    · k), of which the lower end is returned if it is no wider than ``tol``.

    Parameters
    ----------
    y_true : array-like of classes
        Numbers 0, 1, …, or names listed in ``classes``.
    y_prob : matrix
        A row per example and a column per class, rows summing to 1.
    method : "auto", "exact" or "landmarks"
        "auto" is exact to 5,000 different rows and uses landmarks beyond.
    landmarks : int, optional
        How many landmarks, drawn from the rows; by default 800. More are closer, and slower.
    tol : float, optional
        How wide the interval may be with landmarks. By default an exact value is asked for.
    classes : sequence, optional
        The labels in the order of the columns, where they are not 0, 1, … or the names of a
        frame's columns.
    normalize : bool
        Divide each row by its sum, where rounding keeps rows from summing to 1.
    sample_weight : array-like, optional
    rng : int, numpy.random.Generator or None
        Which rows become landmarks; the bounds are certain for any. The same rows give the same
        answer; None draws a fresh seed.

    Returns
    -------
    float

    Raises
    ------
    caldist.errors.ToleranceError
        If landmarks do not reach ``tol``; its ``lower`` and ``upper`` are valid bounds.

    Examples
    --------
    >>> from caldist import multiclass
    >>> y_prob = [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5], [0.5, 0.25, 0.25]]
    >>> multiclass.smooth_ce([0, 2, 2, 1], y_prob)
    0.21875
    """
    validate.check_choice("method", method, ("auto", "exact", "landmarks"))
    if landmarks is not None:
        landmarks = validate.check_count("landmarks", landmarks)
        validate.check_goes_with("landmarks", landmarks, "method", method, ("auto", "landmarks"))
    if tol is not None:
        tol = validate.check_positive("tol", tol)
    generator = validate.generator(rng)
    rows = ClassRows.of(
        y_true, y_prob, classes=classes, normalize=normalize, sample_weight=sample_weight
    )
    if rows.n_classes == 2:
        return binary_smooth_ce(rows.binary.joint)
    bounds = smooth_bounds(rows, method, landmarks, generator)
    lower, upper = bounds.ends
    if upper - lower > (tol or 1e-9):
        wanted = "an exact value was asked for" if tol is None else f"tol={tol!r} was asked for"
        message = (
            f"the smooth calibration error is between {lower!r} and {upper!r}, but {wanted}: use "
            "a larger tol, more landmarks, or method='exact'."
        )
        raise ToleranceError(message, lower, upper)
    return lower


def smooth_bounds(
    rows: ClassRows,
    method: Method = "auto",
    landmarks: int | None = None,
    rng: np.random.Generator | None = None,
) -> SmoothBounds:
    """Enclose smCE_k of rows with at least three classes."""
    prediction, masses = _merged(rows, EXACT_ROWS if method == "auto" else None)
    if method == "exact" or (method == "auto" and prediction.shape[0] <= EXACT_ROWS):
        return _transports(prediction, masses)
    rng = np.random.default_rng(0) if rng is None else rng
    return _by_landmarks(rows, landmarks or LANDMARKS, rng)


def residual_masses(rows: ClassRows) -> Vector:
    """Return the residual masses of all rows and classes."""
    masses = rows.dense * -rows.share[:, None]
    masses[np.arange(rows.n_rows), rows.label] += rows.share
    return masses


def _merged(rows: ClassRows, most: int | None) -> tuple[Vector, Vector]:
    """Return the different rows of probabilities and their residual masses.

    Of more than ``most`` rows a first look at one column says whether they can be so few.
    """
    dense = rows.dense
    if most is not None and rows.n_rows > most:
        first = np.unique(dense @ np.linspace(0.3, 0.7, rows.n_classes))
        if first.size > most:
            return dense, np.empty((0, 0))
    different, place = np.unique(dense, axis=0, return_inverse=True)
    place = place.reshape(-1)
    if different.shape[0] == rows.n_rows:
        return dense, residual_masses(rows)
    mass = np.bincount(place, rows.share, different.shape[0])
    masses = different * -mass[:, None]
    np.add.at(masses, (place, rows.label), rows.share)
    return different, masses


def _transports(centre: Vector, masses: Vector) -> SmoothBounds:
    """Solve the transport problem of each class."""
    k = masses.shape[1]
    total = masses.sum(axis=0)
    sign = np.where(total < 0, -1.0, 1.0)
    height = np.full(masses.shape, _NEVER)
    lower, upper = np.abs(total), np.abs(total)

    def one(j: int) -> None:
        mass = sign[j] * masses[:, j]
        have, want = np.flatnonzero(mass > 0), np.flatnonzero(mass < 0)
        if have.size == 0 or want.size == 0:
            return
        potential = np.empty(want.size)
        supply = mass[have]
        # Sums in another order may leave the sinks with an ulp more than there is.
        supply *= max(1.0, (1 + 1e-15) * float(-mass[want].sum()) / float(supply.sum()))
        cost = distances(centre[have], centre[want])
        upper[j] += flow.transport(supply, -mass[want], cost, _REDUCED_COST, potential)
        height[want, j] = 1 - potential
        # What the potentials prove, whatever the solver did: w = 1 - max(0, max_m p_m - TV).
        cost -= potential
        proved = -float(mass[want] @ potential) + float(
            mass[have] @ np.minimum(cost.min(axis=1), 0)
        )
        lower[j] += max(0.0, proved)

    _each(one, k, masses.shape[0])
    return SmoothBounds(total, lower, upper, Witnesses(centre, height, sign))


def _by_landmarks(rows: ClassRows, count: int, rng: np.random.Generator) -> SmoothBounds:
    """Move rows to landmarks, solve there, and pay for the moves."""
    dense = rows.dense
    centre = landmarks_of(rows, count, rng)
    near, away = nearest(dense, centre, 1)
    place, away = near[:, 0], away[:, 0]
    if rows.n_classes <= 64:
        moved = np.array(
            [np.bincount(place, rows.share * v, centre.shape[0]) for v in rows.columns()]
        ).T
    else:
        moved = np.zeros((centre.shape[0], rows.n_classes))
        np.add.at(moved, place, rows.share[:, None] * dense)
    masses = -moved
    np.add.at(masses, (place, rows.label), rows.share)
    solved = _transports(centre, np.ascontiguousarray(masses))
    attained = np.zeros(rows.n_classes)
    error = np.zeros(rows.n_classes)
    parts: dict[int, tuple[Vector, Vector]] = {}
    transposed = np.ascontiguousarray(centre.T)

    def work(part: slice) -> None:
        values = np.empty((part.stop - part.start, rows.n_classes))
        simplex.lipschitz(dense[part], transposed, solved.witnesses.height, values)
        share, label = rows.share[part], rows.label[part]
        own = np.arange(label.size), label
        reached = sums_by(label, share * values[own], rows.n_classes)
        reached -= share @ (dense[part] * values)
        # |c_ij| = v_ij but for the own class, where it is 1 - v_ij.
        cost = (share * away[part]) @ dense[part]
        cost += np.bincount(label, share * away[part] * (1 - 2 * dense[part][own]), cost.size)
        parts[part.start] = reached, cost

    in_chunks(work, rows.n_rows)
    for start in sorted(parts):
        attained += parts[start][0]
        error += parts[start][1]
    total = rows.mean_residual
    lower = np.maximum(solved.witnesses.sign * attained, np.abs(total))
    upper = np.maximum(solved.upper + error, lower)
    return SmoothBounds(total, lower, upper, solved.witnesses)


def landmarks_of(rows: ClassRows, count: int, rng: np.random.Generator) -> Vector:
    """Return different rows, drawn more often where residuals are large."""
    chance = rows.share * ((1 - rows.own) + 0.02)
    possible = int(np.count_nonzero(chance))
    chosen = rng.choice(rows.n_rows, min(count, possible), replace=False, p=chance / chance.sum())
    return np.unique(rows.dense[chosen], axis=0)


def nearest(prediction: Vector, centre: Vector, few: int) -> tuple[Integers, Vector]:
    """Return the nearest centres of each row and their distances, nearest first."""
    few = min(few, centre.shape[0])
    which = np.empty((prediction.shape[0], few), dtype=np.int64)
    distance = np.empty(which.shape)
    transposed = np.ascontiguousarray(centre.T)

    def work(rows: slice) -> None:
        simplex.nearest(prediction[rows], transposed, which[rows], distance[rows])

    in_chunks(work, prediction.shape[0])
    return which, distance


def distances(first: Vector, second: Vector) -> Vector:
    """Return the total variation distances between the rows of two matrices."""
    from scipy.spatial.distance import cdist  # slow to import

    return np.asarray(np.minimum(0.5 * cdist(first, second, "cityblock"), 1.0))


def in_chunks(work: Callable[[slice], None], size: int) -> None:
    """Run work on slices of rows, on all cores where they are many."""
    in_threads(work, [slice(at, min(at + _CHUNK, size)) for at in range(0, size, _CHUNK)])


def _each(work: Callable[[int], None], count: int, size: int) -> None:
    in_threads(work, range(count), None if size >= 300 else 1)
