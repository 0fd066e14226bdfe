"""How many rows an interval of a given width needs, before any row is seen."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from caldist import _validate
from caldist.measures._measure import Measure, Worst
from caldist.measures.registry import all_measures, find

_MOST_ROWS = 2**53


def interval_width(
    *, measure: str | Measure[Any] = "smooth_ce", n_rows: int, confidence_level: float = 0.95
) -> float:
    r"""Return how wide the proved interval of a measure is, for any data of this many rows.

    With probability at least the confidence level 1 - δ, whatever the distribution,

    .. math:: T_n - \frac{a}{\sqrt n} - t \;\le\; T \;\le\; T_n + t, \qquad
              t = b \sqrt{\frac{\ln(2/\delta)}{2n}}

    where :math:`T_n` is the measure of n independent rows and T the population's. The width is the
    distance of the two ends, :math:`a/\sqrt n + 2t`, and never more than 1, because all these
    measures lie in [0, 1].

    **What it means.** A promise made before the data are seen. The interval computed from data,
    :func:`caldist.confidence_interval`, is usually several times narrower.

    **Why it holds.** Replacing a row changes :math:`T_n` by at most b/n, so it is within t of its
    mean on either side (McDiarmid). The mean is never below T, because the measures are convex,
    and at most :math:`a/\sqrt n` above it: a is 1 for ``kernel_ce``, √(1 + 1/w) for
    ``random_interval_ce`` with bins of width w = 0.1. There b = 2. The Brier score is a mean of
    numbers in [0, 1]: a = 0 and b = 1. For ``smooth_ce`` and ``lower_distance`` a = 0 and b = 2:
    the functions whose largest mean they are have a variation of at most 2 along the outcomes, set
    out on a line, so both are off by at most twice the Kolmogorov distance of the sample
    (Dvoretzky, Kiefer, Wolfowitz; Massart).

    **Cost.** None.

    Parameters
    ----------
    measure : measure or its name
        ``smooth_ce``, ``kernel_ce``, ``lower_distance``, ``random_interval_ce`` or
        ``brier_score``.
    n_rows : int
        How many independent rows of equal weight there will be.
    confidence_level : float

    Returns
    -------
    float

    See Also
    --------
    sample_size : the inverse.

    Examples
    --------
    >>> import caldist
    >>> round(caldist.inference.interval_width(measure="smooth_ce", n_rows=10_000), 4)
    0.0543
    >>> round(caldist.inference.interval_width(measure="brier_score", n_rows=10_000), 4)
    0.0272
    """
    worst = _worst(measure)
    n_rows = _validate.check_count("n_rows", n_rows)
    confidence_level = _validate.check_fraction("confidence_level", confidence_level)
    return _width(worst, n_rows, confidence_level)


def sample_size(
    *, measure: str | Measure[Any] = "smooth_ce", width: float, confidence_level: float = 0.95
) -> int:
    r"""Return how many rows make the proved interval of a measure at most this wide.

    It is the least n whose :func:`caldist.inference.interval_width` is at most ``width``, the
    distance from the interval's lower end to its upper one.

    **What it means.** With so many independent rows the promise is kept whatever the data are. It
    is a worst case: a tenth of the rows often does, which
    :func:`caldist.confidence_interval` on a first sample will show.

    **Cost.** None.

    Parameters
    ----------
    measure : measure or its name
        ``smooth_ce``, ``kernel_ce``, ``lower_distance``, ``random_interval_ce`` or
        ``brier_score``.
    width : float
        The wanted width, between 0 and 1.
    confidence_level : float

    Returns
    -------
    int

    See Also
    --------
    interval_width : the inverse, and the bound itself.

    Examples
    --------
    >>> import caldist
    >>> caldist.sample_size(measure="smooth_ce", width=0.05)
    11805
    >>> caldist.sample_size(measure="brier_score", width=0.05)
    2952
    """
    worst = _worst(measure)
    width = _validate.check_fraction("width", width)
    confidence_level = _validate.check_fraction("confidence_level", confidence_level)
    root = _constant(worst, confidence_level) / width
    if root > math.sqrt(_MOST_ROWS):
        message = (
            f"width is {width!r}; that needs more rows than can be counted exactly, 2^53: ask for "
            "a larger width."
        )
        raise ValueError(message)
    n = max(1, math.ceil(root**2))
    # The formula may be off by one row, because the root is rounded.
    while n > 1 and _width(worst, n - 1, confidence_level) <= width:
        n -= 1
    while _width(worst, n, confidence_level) > width:
        n += 1
    return n


def _worst(measure: object) -> Worst:
    """Return what is proved of a measure for every population; of a norm by its own constants."""
    known = [m.name for m in all_measures().values() if m.facts.worst is not None]
    chosen = find(measure, among=known)
    if chosen.facts.worst is None:
        message = (
            f"measure is {chosen.name!r}; bounds that hold for every distribution are proved for "
            f"{', '.join(known)}: choose one of these."
        )
        raise ValueError(message)
    if not chosen.is_norm:
        return chosen.facts.worst
    norm = chosen.norm(np.empty(0))
    noise = norm.noise if chosen.facts.worst.bias else 0.0
    return Worst(noise, 2 * norm.bound)


def _constant(worst: Worst, confidence_level: float) -> float:
    """Return the width times √n."""
    tail = math.sqrt(math.log(2 / (1 - confidence_level)) / 2)
    return worst.bias + 2 * worst.reach * tail


def _width(worst: Worst, n_rows: int, confidence_level: float) -> float:
    return min(1.0, _constant(worst, confidence_level) / math.sqrt(n_rows))
