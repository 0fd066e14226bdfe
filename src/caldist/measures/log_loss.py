"""The logarithmic loss, or cross-entropy."""

from __future__ import annotations

import math

from numpy.typing import ArrayLike

from caldist._kernels import sums
from caldist.data.joint import Joint
from caldist.data.rows import Rows
from caldist.measures._measure import Entries, measure


def log_loss_properties() -> Entries:
    """Return its line in the table of properties."""
    from caldist._properties import claims, witnesses

    yield claims.Entry(
        claims.of_joints("log_loss", log_loss),
        claims.jump(
            "Unbounded: on a domain of masses ½, ¼, … there are, arbitrarily near the constant "
            "½, predictors that are certain and wrong on a rare x, with infinite loss. It is "
            "continuous for predictions kept away from 0 and 1 and, with infinity as a value, "
            "on a finite domain.",
            witnesses.rare_certainty(None),
            tuple(witnesses.rare_certainty(rank) for rank in (10, 20, 30)),
        ),
        claims.positive("A fair coin, predicted as such (section 3)."),
        claims.sound("From log loss ≥ ECE."),
        claims.positive(),
        claims.below("1", "From -ln(1 - x) ≥ x: log loss ≥ E|y - v| ≥ ECE ≥ dCE.", 1),
        paper=(True, False, True),
    )


@measure(
    symbol="log-loss",
    summary="mean logarithmic loss: calibration and sharpness together",
    position=220,
    shown_in=("repair",),
    called="log loss",
    ceiling=math.inf,
    properties=log_loss_properties,
)
def log_loss(
    y_true: ArrayLike | Joint,
    y_prob: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    r"""Return the mean logarithmic loss, in nats.

    .. math:: \mathrm{LL} = -E\,[\,y \ln v + (1 - y) \ln(1 - v)\,]

    **What it means.** A proper score, like :func:`caldist.brier_score`, that charges a prediction
    by the surprise at its label. A certain prediction that fails (0 for label 1, or 1 for label
    0) is infinitely surprising: one such row with weight makes the result ``inf``. That is the
    value, not an overflow. Libraries that return a finite number have moved the prediction away
    from 0 and 1 by some amount, and the number then depends on that amount; nothing is moved
    here. A certain prediction that holds costs nothing.

    **What it estimates.** The population's value, without bias, where that is finite.

    **Cost.** O(n): one pass over the arrays, which copies and sorts nothing.

    Parameters
    ----------
    y_true : array-like of 0 and 1, or Joint
        A joint stands for labels, predictions and weights at once.
    y_prob : array-like in [0, 1]
        The predicted probability of label 1.
    sample_weight : array-like, optional
    pos_label : optional
        The value of ``y_true`` that counts as label 1, where labels are not 0 and 1.

    References
    ----------
    Good, "Rational decisions", 1952.

    Examples
    --------
    >>> import caldist
    >>> round(caldist.log_loss([0, 1], [0.25, 0.75]), 6)
    0.287682
    >>> caldist.log_loss([0, 1], [0.0, 0.75]) < 0.15
    True
    >>> caldist.log_loss([1, 1], [0.0, 0.75])
    inf
    """
    rows = Rows.as_given(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
    [[loss, rest, failures]] = rows.add_up(sums.logarithms, room=(3,))
    if failures > 0:
        return math.inf
    return float(loss + rest) / rows.total + 0.0  # no negative zero
