"""The normalized cross-entropy of confidence scores, NCE."""

from __future__ import annotations

import math

from numpy.typing import ArrayLike

from caldist.data.joint import Joint
from caldist.data.rows import Rows
from caldist.errors import InvalidInput
from caldist.measures.base import Lacking, measure
from caldist.measures.log_loss import log_loss


@measure(
    symbol="NCE",
    summary="share of the labels' entropy that the predictions explain",
    position=230,
    floor=-math.inf,
    no_test=Lacking(
        "it is large where predictions are good", "Use log_loss, or leave measure out."
    ),
)
def normalized_cross_entropy(
    y_true: ArrayLike | Joint,
    y_prob: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    r"""Return the normalized cross-entropy: the share of the base rate's entropy that is explained.

    .. math:: \mathrm{NCE} = \frac{H(\bar y) - \mathrm{LL}}{H(\bar y)}, \qquad
              H(p) = -p \ln p - (1 - p) \ln(1 - p)

    with LL the logarithmic loss (:func:`caldist.log_loss`) and :math:`\bar y` the mean label. The
    base of the logarithm does not matter.

    **What it means.** Larger is better, unlike for the other measures here. 1 means that every
    prediction was certain and right, 0 that the predictions are worth as much as the mean label
    for every row, and less than 0 that they are worth less. It is ``-inf`` where a certain
    prediction fails. This is the orientation of the speech recognition evaluations of NIST; in
    the advertising literature "normalized entropy" is the ratio LL/H, which is 1 - NCE.

    **What it estimates.** The population's value, at rate 1/√n, where that is finite.

    **Cost.** O(n), without a sort.

    Parameters
    ----------
    y_true : array-like of 0 and 1
        Both labels must occur: with one label the entropy of the base rate is 0.
    y_prob : array-like in [0, 1]
        The predicted probability of label 1.
    sample_weight : array-like, optional
    pos_label : optional
        The value of ``y_true`` that counts as label 1, where labels are not 0 and 1.

    References
    ----------
    Siu, Gish and Richardson, "Improved estimation, evaluation and applications of confidence
    measures for speech recognition", 1997.

    Examples
    --------
    >>> import caldist
    >>> round(caldist.measures.normalized_cross_entropy([0, 1, 0, 1], [0.25, 0.75, 0.25, 0.75]), 6)
    0.584963
    >>> caldist.measures.normalized_cross_entropy([0, 1, 0, 1], [0.5, 0.5, 0.5, 0.5])
    0.0
    """
    rows = Rows.of(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
    zeros, ones = rows.mean(lambda y, _: 1 - y), rows.mean(lambda y, _: y)
    if zeros == 0 or ones == 0:
        raise InvalidInput(
            argument="y_true",
            reason=f"is {int(zeros == 0)} in every row with weight: the entropy of the base rate "
            "is then 0 and cannot be divided by",
            remedy="Pass rows of both labels, or use log_loss.",
        )
    rarer = min(zeros, ones)  # log(1 - rarer) would lose its digits
    entropy = -rarer * math.log(rarer) - (1 - rarer) * math.log1p(-rarer)
    return (entropy - log_loss.of(rows)) / entropy
