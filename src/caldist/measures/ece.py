"""The expected calibration error."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from caldist._util.products import dot
from caldist.data import validate
from caldist.data.joint import Joint
from caldist.data.rows import Rows
from caldist.measures.base import NO_POPULATION, SMEARED, measure


@measure(
    symbol="ECE",
    summary="mean deviation of frequency from prediction",
    position=90,
    shown_in=("evaluate", "measure", "report"),
    no_interval=SMEARED,
    no_comparison=NO_POPULATION,
)
def ece(
    y_true: ArrayLike | Joint,
    y_prob: ArrayLike | None = None,
    *,
    norm: float = 1,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    r"""Return the expected calibration error, the mean of \|E[y | v] - v\|.

    .. math:: \mathrm{ECE} = E\,|E[y \mid v] - v|, \qquad
              \ell_p\text{-ECE} = (E\,|E[y \mid v] - v|^p)^{1/p}

    **What it means.** 0 if and only if the predictions are perfectly calibrated, and an upper bound
    on the distance to calibration. It is not continuous: an arbitrarily small change of the
    predictions can move it by 1/2.

    **What it estimates.** It describes the sample. When predictions hardly repeat, the label of
    each row stands for its own frequency and the sample's ECE is close to E|y - v|, whatever the
    population's is. No estimator from finitely many rows can do better in general. For the
    population use :func:`caldist.smooth_ce`.

    **Cost.** O(n log n), a sort.

    Parameters
    ----------
    y_true : array-like of 0 and 1, or Joint
        A joint stands for labels, predictions and weights at once.
    y_prob : array-like in [0, 1]
        The predicted probability of label 1.
    norm : 1, 2 or inf
        The exponent p; inf is the largest deviation of any predicted value.
    sample_weight : array-like, optional
    pos_label : optional
        The value of ``y_true`` that counts as label 1, where labels are not 0 and 1.

    Examples
    --------
    >>> import caldist
    >>> caldist.ece([0, 1, 1, 1], [0.5, 0.5, 0.75, 0.75])
    0.125
    """
    validate.check_choice("norm", norm, (1, 2, math.inf))
    rows = Rows.of(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
    if norm == 1:
        return rows.residuals.absolute()
    joint = rows.joint
    mass = joint.mass0 + joint.mass1
    gap = np.abs(joint.mass1 / mass - joint.prediction)
    if norm == 2:
        return math.sqrt(dot(mass / joint.total, gap**2))
    return float(gap.max())
