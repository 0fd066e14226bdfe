"""Ready-made function families for :func:`caldist.weighted_ce`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from caldist._util.types import Vector
from caldist.data import validate
from caldist.errors import InvalidInput

__all__ = ["polynomials", "region"]


def polynomials(degree: int) -> list[Callable[[Vector], Vector]]:
    """Return the monomials 1, v, …, v^degree: low-degree calibration.

    Parameters
    ----------
    degree : int
        The highest power, from 0.

    Examples
    --------
    >>> import numpy as np
    >>> from caldist.measures import polynomials
    >>> [float(w(np.array(0.5))) for w in polynomials(2)]
    [1.0, 0.5, 0.25]
    """
    return [partial(_power, k) for k in range(validate.check_count("degree", degree, 0) + 1)]


def region(low: float, high: float) -> Callable[[Vector], Vector]:
    """Return the indicator of low ≤ v ≤ high: the bias among those predictions.

    Parameters
    ----------
    low, high : float
        The ends of the range, in [0, 1].

    Examples
    --------
    >>> import caldist
    >>> from caldist.measures import region
    >>> caldist.weighted_ce([0, 1], [0.25, 0.75], functions=[region(0.5, 1)])
    0.125
    """
    low, high = (
        validate.check_nonnegative(name, value) for name, value in (("low", low), ("high", high))
    )
    if not low <= high <= 1:
        reason = f"it must hold that 0 <= low <= high <= 1, but low is {low}"
        raise InvalidInput(argument="high", value=high, reason=reason)
    return partial(_indicator, low, high)


def _power(exponent: int, v: Vector) -> Vector:
    return v**exponent


def _indicator(low: float, high: float, v: Vector) -> Vector:
    return ((low <= v) & (v <= high)).astype(np.float64)
