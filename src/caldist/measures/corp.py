"""The CORP decomposition of a score into miscalibration, discrimination and uncertainty."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from caldist._util.results import Result
from caldist._util.types import Integers, Vector
from caldist.data import validate
from caldist.data.joint import Joint
from caldist.data.rows import Rows
from caldist.errors import answering
from caldist.kernels.loader import recalibration
from caldist.measures.brier_score import brier_score
from caldist.measures.log_loss import log_loss

Score = Literal["brier", "log"]


@dataclass(frozen=True, eq=False)
class Corp(Result):
    """A mean score and its parts: score = miscalibration - discrimination + uncertainty.

    Attributes
    ----------
    score
        The mean score of the predictions; smaller is better.
    miscalibration
        How much isotonic recalibration would lower it; at least 0.
    discrimination
        How much lower the recalibrated score is than that of the mean label; at least 0.
    uncertainty
        The score of the mean label for every row.
    curve_prediction, curve_value
        The distinct predictions, increasing, and the recalibrated value of each: the reliability
        curve.
    """

    score: float
    miscalibration: float
    discrimination: float
    uncertainty: float
    curve_prediction: Vector = field(repr=False)
    curve_value: Vector = field(repr=False)

    def __str__(self) -> str:
        return (
            f"score {self.score:.4g} = miscalibration {self.miscalibration:.4g} - discrimination "
            f"{self.discrimination:.4g} + uncertainty {self.uncertainty:.4g}"
        )


@answering
def corp(
    y_true: ArrayLike | Joint,
    y_prob: ArrayLike | None = None,
    *,
    score: Score = "brier",
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> Corp:
    r"""Split a mean score into miscalibration, discrimination and uncertainty.

    .. math:: \bar S = \mathrm{MCB} - \mathrm{DSC} + \mathrm{UNC}, \qquad
              \mathrm{MCB} = \bar S - \bar S_\mathrm{iso}, \quad
              \mathrm{DSC} = \mathrm{UNC} - \bar S_\mathrm{iso}

    with :math:`\bar S` the mean score of the predictions, :math:`\bar S_\mathrm{iso}` that of the
    predictions after isotonic regression of the labels on them, and UNC that of the mean label.

    **What it means.** MCB is what a monotone recalibration could gain, 0 if and only if the
    predictions equal their isotonic fit; DSC is how much the order of the predictions tells
    about the labels, 0 if and only if the fit is constant. The fit minimises every proper score
    at once and has no bins to choose. On the Niamey EMOS forecasts of the paper, for example, the
    mean Brier score 0.232 is 0.0183 - 0.0305 + 0.244.

    With ``score="log"`` a certain prediction that fails makes the score infinite
    (:func:`caldist.log_loss`). The recalibrated score and UNC are finite always, because the fit is
    0 or 1 only where all labels agree with it; so the miscalibration is then ``inf`` and the
    other two parts are as meaningful as ever.

    **What it estimates.** It describes the sample. The fit uses the labels that it is scored on, so
    MCB and DSC are too large on average, by an amount that vanishes as n grows. A calibrated
    predictor does not show MCB = 0.

    **Cost.** O(n log n): a sort and one pass of the pool-adjacent-violators algorithm. Equal
    predictions get one value.

    Parameters
    ----------
    y_true : array-like of 0 and 1, or Joint
        A joint stands for labels, predictions and weights at once.
    y_prob : array-like in [0, 1]
        The predicted probability of label 1.
    score : "brier" or "log"
        The squared error or the logarithmic loss, in nats.
    sample_weight : array-like, optional
    pos_label : optional
        The value of ``y_true`` that counts as label 1, where labels are not 0 and 1.

    Returns
    -------
    Corp

    References
    ----------
    Dimitriadis, Gneiting and Jordan, "Stable reliability diagrams for probabilistic classifiers",
    2021.

    Examples
    --------
    >>> import caldist
    >>> caldist.measures.corp([0, 1, 0, 1], [0.25, 0.5, 0.5, 0.75])
    Corp(score=0.15625, miscalibration=0.03125, discrimination=0.125, uncertainty=0.25)
    """
    validate.check_choice("score", score, ("brier", "log"))
    rows = Rows.of(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
    joint = rows.joint
    # Not normalised: shares of weights of very different size could vanish.
    mass0, mass1 = joint.mass0, joint.mass1
    start = _blocks(mass0, mass1)
    block0, block1 = np.add.reduceat(mass0, start), np.add.reduceat(mass1, start)
    total0, total1 = mass0.sum(keepdims=True), mass1.sum(keepdims=True)
    if score == "brier":
        mean, of_blocks = brier_score(joint), _gini
    else:
        mean, of_blocks = log_loss(joint), _entropy
    recalibrated = of_blocks(block0, block1) / joint.total
    uncertainty = of_blocks(total0, total1) / joint.total
    value = block1 / (block0 + block1)
    return Corp(
        score=mean,
        # Both differences are at least 0 but for rounding.
        miscalibration=max(0.0, mean - recalibrated),
        discrimination=max(0.0, uncertainty - recalibrated),
        uncertainty=uncertainty,
        curve_prediction=joint.prediction,
        curve_value=np.repeat(value, np.diff(start, append=joint.prediction.size)),
    )


def isotonic_fit(mass0: Vector, mass1: Vector) -> Vector:
    """Return the isotonic regression of labels on increasing predictions with these masses."""
    start = _blocks(mass0, mass1)
    block0, block1 = np.add.reduceat(mass0, start), np.add.reduceat(mass1, start)
    return np.repeat(block1 / (block0 + block1), np.diff(start, append=mass0.size))


def _blocks(mass0: Vector, mass1: Vector) -> Integers:
    """Return where the blocks of the isotonic fit start."""
    mass = mass0 + mass1
    start = np.empty(mass.size, dtype=np.int64)
    number = recalibration.pool(mass1 / mass, mass, start)
    return start[:number]


def _gini(mass0: Vector, mass1: Vector) -> float:
    """Return the sum of squared errors of predicting each block's mean label."""
    return float((mass0 * (mass1 / (mass0 + mass1))).sum())


def _entropy(mass0: Vector, mass1: Vector) -> float:
    """Return the sum of logarithmic losses of predicting each block's mean label."""
    mass = mass0 + mass1
    loss = 0.0
    for part in (mass0, mass1):
        some = part > 0
        loss -= float((part[some] * np.log(part[some] / mass[some])).sum())
    return loss + 0.0  # no negative zero
