r"""Windows that begin at any batch: how much is bet on each, and which stay.

Before any data the stake 1 is divided among the batches at which a change may begin: ω₀ = 0.85 on
the first, ω_j ∝ (j + 1)^{−1.2} on the others. The share of a batch that has not come yet waits
as cash. Each share grows as the window from its batch on does, so their sum is a martingale if
each window's value is one. Old windows are thinned out: their shares are lost, which only lowers
the sum.
"""

from __future__ import annotations

import numpy as np

from caldist._util.types import Integers, Vector

_FIRST = 0.85
_DECAY = 1.2
_ZETA = 5.591582441177751  # ζ(1.2)
_DENSE = 16  # the latest windows, all of which stay


def log_shares(start: Integers) -> Vector:
    """Return log ω of the window from each start."""
    later = np.log((1 - _FIRST) / (_ZETA - 1)) - _DECAY * np.log1p(start)
    return np.asarray(np.where(start == 0, np.log(_FIRST), later))


def cash(batches: int) -> float:
    """Return the share of all windows that have not begun yet."""
    if batches == 0:
        return 1.0
    # Euler and Maclaurin: from 64 on the next term is below 1e-13 of the sum.
    head = float(np.sum(np.arange(batches + 1.0, 64.0) ** -_DECAY))
    a = max(batches + 1.0, 64.0)
    s = _DECAY
    tail = a ** (1 - s) / (s - 1) + a**-s / 2 + s * a ** (-s - 1) / 12
    tail -= s * (s + 1) * (s + 2) * a ** (-s - 3) / 720
    return float((1 - _FIRST) / (_ZETA - 1) * (head + tail))


def mask(start: Integers, batches: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return a mask of the windows that stay after that many batches.

    The last sixteen; of those of age a from 8·2^k to 16·2^k the multiples of 2^k, eight for each
    doubling of the age. So a change lies within a sixteenth of its age of a window's start.
    """
    age = batches - start
    power = np.maximum(np.frexp(age / 8.0)[1] - 1, 0)
    return np.asarray((age < _DENSE) | (start % (1 << power) == 0), dtype=np.bool_)
