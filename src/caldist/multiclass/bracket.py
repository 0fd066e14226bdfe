"""The bracket of the distance of several classes, and its proof."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from caldist.certificates import ClassCertificate
from caldist.data import validate
from caldist.data.class_rows import Classes, ClassRows
from caldist.errors import answering
from caldist.inference.resampling import Resampler
from caldist.measures.certification import DistanceBracket
from caldist.measures.lower_distance import certify_lower, lower_distance
from caldist.multiclass.classwise import certificates, default_tolerance, distance_ends
from caldist.multiclass.coupling import Shares, couple, recalibrated
from caldist.multiclass.smooth import smooth_bounds


@answering
def distance_bracket(
    y_true: ArrayLike,
    y_prob: ArrayLike | None = None,
    *,
    tol: float | None = None,
    classes: Classes | None = None,
    normalize: bool = False,
    sample_weight: ArrayLike | None = None,
    rng: validate.Rng = 0,
) -> DistanceBracket:
    r"""Return bounds on the distance to calibration of several classes.

    .. math:: \mathrm{ldCE}_k = \min E\,TV(v, u)

    over all couplings of the data's (v, y) with a u such that (u, y) is perfectly calibrated.

    **What it means.** Certain bounds on ldCE_k of these rows, in total variation. Below, the larger
    one of the classwise distance and of

    .. math:: \max\bigl(\tfrac12 \textstyle\sum_j |T_j|,\;
        \tfrac16 \sum_j |T_j| + \tfrac13 \sum_j P_j\bigr),

    :math:`T_j = E[y_j - v_j]` and :math:`|T_j| + P_j` the parts of
    :func:`caldist.multiclass.smooth_ce`. Above, the smaller one of the cost of an explicit coupling
    and of 2·smCE_k. Near calibration look at the width of the bracket, not at its ratio. With two
    classes it is the lower distance and its certified upper end. The bracket of
    :func:`caldist.distance_bracket` describes every domain behind the predictions and is wider
    above.

    **What it estimates.** Nothing: both ends describe these rows, and with ten classes or more the
    upper one never describes the population. Limits for the population are those of
    ``multiclass.confidence_interval(…, measure="distance")``.

    **Cost.** Some seconds at 10,000 rows and ten classes; memory of about a hundred numbers a row.

    Parameters
    ----------
    y_true : array-like of classes
        Numbers 0, 1, …, or names listed in ``classes``.
    y_prob : matrix
        A row per example and a column per class, rows summing to 1.
    tol : float, optional
        How precise the classwise distance shall be; as in
        :func:`caldist.multiclass.classwise_distance`.
    classes : sequence, optional
        The labels in the order of the columns, where they are not 0, 1, … or the names of a
        frame's columns.
    normalize : bool
        Divide each row by its sum, where rounding keeps rows from summing to 1.
    sample_weight : array-like, optional
    rng : int, numpy.random.Generator or None
        Where the search for a coupling begins. The same rows give the same answer; None draws a
        fresh seed.

    Returns
    -------
    caldist.measures.DistanceBracket

    Examples
    --------
    >>> from caldist import multiclass
    >>> y_prob = [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5], [0.5, 0.25, 0.25]]
    >>> bracket = multiclass.distance_bracket([0, 2, 2, 1], y_prob)
    >>> round(bracket.lower, 3), bracket.lower_measure, bracket.upper_measure
    (0.188, 'classwise_distance', 'coupling')
    """
    if tol is not None:
        tol = validate.check_positive("tol", tol)
    resampler = Resampler.of(rng, n_resamples=999)
    rows = ClassRows.of(
        y_true, y_prob, classes=classes, normalize=normalize, sample_weight=sample_weight
    )
    return _bracket(rows, resampler.stream(0), tol)


def _bracket(rows: ClassRows, rng: np.random.Generator, tol: float | None) -> DistanceBracket:
    if rows.n_classes == 2:
        proof = certify_lower(rows.binary.joint, tol=default_tolerance(rows, tol))
        ends = (proof.lower, proof.upper, "classwise_distance", "coupling")
        return DistanceBracket(*ends, measure=lower_distance.name)
    smooth = smooth_bounds(rows, rng=rng)
    shift = float(np.abs(smooth.total).sum())
    carried = float(smooth.lower.sum()) - shift
    below = {
        "classwise_distance": distance_ends(rows, tol)[0],
        "smooth_ce": max(shift / 2, shift / 6 + carried / 3),
    }
    above = {"coupling": couple(rows, rng).cost, "smooth_ce": float(smooth.upper.sum())}
    best, least = max(below, key=below.__getitem__), min(above, key=above.__getitem__)
    upper = above[least]
    return DistanceBracket(min(below[best], upper), upper, best, least, measure=lower_distance.name)


@answering
def certify(
    y_true: ArrayLike,
    y_prob: ArrayLike | None = None,
    *,
    tol: float | None = None,
    classes: Classes | None = None,
    normalize: bool = False,
    sample_weight: ArrayLike | None = None,
    rng: validate.Rng = 0,
) -> ClassCertificate:
    """Return bounds on the distance of several classes with a proof that anyone can re-check.

    **What it means.** The lower bound is the classwise distance, proved by a pair of potentials
    for each class; the upper bound the cost of a coupling with calibrated predictions, proved by
    (row, group, share) triples. ``verify()`` recomputes both from the rows and those arrays with
    code of its own.

    **What it estimates.** Nothing: both bounds are of these rows.

    **Cost.** That of :func:`caldist.multiclass.classwise_distance`, and some seconds for the
    coupling of 10,000 rows and ten classes. The certificate holds a copy of the rows.

    Parameters
    ----------
    y_true : array-like of classes
        Numbers 0, 1, …, or names listed in ``classes``.
    y_prob : matrix
        A row per example and a column per class, rows summing to 1.
    tol : float, optional
        How precise the classwise distance shall be.
    classes : sequence, optional
        The labels in the order of the columns, where they are not 0, 1, … or the names of a
        frame's columns.
    normalize : bool
        Divide each row by its sum, where rounding keeps rows from summing to 1.
    sample_weight : array-like, optional
    rng : int, numpy.random.Generator or None
        Where the search for a coupling begins; the bound is certain for any. The same rows give the
        same answer; None draws a fresh seed.

    Returns
    -------
    caldist.certificates.ClassCertificate

    Examples
    --------
    >>> from caldist import multiclass
    >>> y_prob = [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5], [0.5, 0.25, 0.25]]
    >>> proof = multiclass.certify([0, 2, 2, 1], y_prob)
    >>> proof.verify()
    <ClassCertificate: multiclass_distance is at least 0.187..., of 4 rows and 3 classes>
    >>> round(proof.lower, 4)
    0.1875
    """
    if tol is not None:
        tol = validate.check_positive("tol", tol)
    generator = validate.generator(rng)
    rows = ClassRows.of(
        y_true, y_prob, classes=classes, normalize=normalize, sample_weight=sample_weight
    )
    proofs = [proof for _, proof in certificates(rows, tol)]
    sizes = [proof.node.size for proof in proofs]
    shares = _two_classes(rows, tol) if rows.n_classes == 2 else couple(rows, generator)
    upper = shares.cost
    return ClassCertificate(
        prediction=rows.dense.copy(),
        label=rows.label,
        weight=np.ones(rows.n_rows) if rows.weight is None else rows.weight.copy(),
        lower=min(0.5 * math.fsum(proof.lower for proof in proofs), upper),
        upper=upper,
        start=np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
        node=np.concatenate([proof.node for proof in proofs]),
        potential0=np.concatenate([proof.potential0 for proof in proofs]),
        potential1=np.concatenate([proof.potential1 for proof in proofs]),
        row=shares.row,
        group=shares.group,
        share=shares.share,
    )


def _two_classes(rows: ClassRows, tol: float | None) -> Shares:
    """Return the coupling of the binary proof as shares of rows."""
    binary = rows.binary
    proof = certify_lower(binary.joint, tol=default_tolerance(rows, tol))
    moves = proof.coupling()
    groups, group = np.unique(moves.target, return_inverse=True)
    source = np.searchsorted(binary.joint.prediction, moves.source)
    key = 2 * source + moves.label
    order = np.argsort(key, kind="stable")
    key, group, mass = key[order], group.reshape(-1)[order], moves.mass[order]
    at = np.minimum(
        np.searchsorted(binary.joint.prediction, binary.prediction),
        binary.joint.prediction.size - 1,
    )
    label = rows.label
    own = 2 * at + label
    first, last = np.searchsorted(key, own, "left"), np.searchsorted(key, own, "right")
    # A row whose mass rounding has lost, or that has none, goes to the corner of its class.
    alone = last == first
    count = np.where(alone, 1, last - first)
    row = np.repeat(np.arange(rows.n_rows), count)
    step = np.arange(row.size) - np.repeat(np.cumsum(count) - count, count)
    place = np.minimum(np.repeat(first, count) + step, key.size - 1)
    lost = alone[row]
    where = np.where(lost, groups.size + label[row], group[place])
    share = np.where(lost, 1.0, mass[place])
    share /= np.bincount(row, share, rows.n_rows)[row]
    used, where = np.unique(where, return_inverse=True)
    group = where.reshape(-1).astype(np.int64)
    return recalibrated(rows, row.astype(np.int64), group, share, used.size, 2)
