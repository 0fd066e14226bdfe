"""The squared kernel calibration error, SKCE."""

from __future__ import annotations

from typing import Literal

from numpy.typing import ArrayLike

from caldist import _validate
from caldist.data.joint import Joint
from caldist.measures._measure import measure
from caldist.measures.kernel_ce import kernel_ce

SkceKernel = Literal["laplace", "gaussian"]


@measure(
    symbol="SKCE",
    summary="twice the squared kernel error, without bias",
    position=260,
    floor=-2.0,
    ceiling=2.0,
)
def skce(
    y_true: ArrayLike | Joint,
    y_prob: ArrayLike | None = None,
    *,
    kernel: SkceKernel = "laplace",
    bandwidth: float = 1.0,
    unbiased: bool = True,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    r"""Return the squared kernel calibration error of two classes.

    .. math:: \mathrm{SKCE} = E[(e_y - p)^\top K(p, p')\,(e_{y'} - p')]

    for two independent rows, where p = (1 - v, v) are the probabilities of both classes,
    :math:`e_y` is the unit vector of the label and the matrix-valued kernel is k(p, p') times the
    identity. Since :math:`e_y - p = (y - v)\,(-1, 1)`, the product of two rows is
    :math:`2 (y - v)(y' - v')\,k(p, p')`, so

    .. math:: \mathrm{SKCE} = 2\,\mathrm{kCE}^2,

    twice the square of :func:`caldist.kernel_ce`. The kernel k is a function of the total variation
    distance of p and p', which is \|v - v'\|: :math:`e^{-|v - v'|/h}` or
    :math:`e^{-((v - v')/h)^2}`. With the Euclidean distance :math:`\sqrt2\,|v - v'|` the same
    kernels have the bandwidth :math:`\sqrt2\,h`.

    **What it means.** 0 for the population if and only if the predictions are perfectly calibrated.

    **What it estimates.** The population's value. The unbiased estimator leaves out the pairs of a
    row with itself and can be negative; the biased one keeps them, is at least 0 and too large by
    at most 2/n on average.

    **Cost.** O(n log n), a sort and one pass, for the double sum of the definition.

    Parameters
    ----------
    y_true : array-like of 0 and 1, or Joint
        A joint stands for labels, predictions and weights at once. For ``unbiased=True`` it must be
        of rows without weights, not on a grid.
    y_prob : array-like in [0, 1]
        The predicted probability of label 1.
    kernel : "laplace" or "gaussian"
    bandwidth : float
        h above. The authors often take the median distance of two predictions.
    unbiased : bool
        The estimator above; the unbiased one needs at least two rows.
    sample_weight : array-like, optional
        Only for ``unbiased=False``.
    pos_label : optional
        The value of ``y_true`` that counts as label 1, where labels are not 0 and 1.

    References
    ----------
    Widmann, Lindsten and Zachariah, "Calibration tests in multi-class classification: a unifying
    framework", 2019.

    Examples
    --------
    >>> import caldist
    >>> y_true, y_prob = [0, 1, 0, 1], [0.5, 0.5, 0.5, 1.0]
    >>> round(caldist.skce(y_true, y_prob), 12)
    -0.083333333333
    >>> round(caldist.skce(y_true, y_prob, unbiased=False), 12)
    0.03125
    """
    _validate.check_choice("kernel", kernel, ("laplace", "gaussian"))
    bandwidth = _validate.check_positive("bandwidth", bandwidth)
    unbiased = _validate.check_flag("unbiased", unbiased)
    value = 2 * kernel_ce(
        y_true,
        y_prob,
        kernel=kernel,
        bandwidth=bandwidth,
        squared=True,
        unbiased=unbiased,
        sample_weight=sample_weight,
        pos_label=pos_label,
    )
    return value if unbiased else max(0.0, value)  # rounding must not make a square negative
