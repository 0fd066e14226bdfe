r"""Bets of many sizes on bounded payoffs, from their sums, and bets on sums of whole batches.

A payoff x ≥ −1 with mean at most d has E exp(λx − ψ(λ)x²) ≤ 1 + λd ≤ e^{λd} for 0 ≤ λ < 1 and
ψ(λ) = −log(1 − λ) − λ (Fan, Grama and Liu). A mixture over λ replaces the choice of one.
"""

from __future__ import annotations

import numpy as np

from caldist._util.types import Vector
from caldist.kernels.loader import bets as kernel

_HALVES = np.arange(1, 29) / 2
RATES = 2.0**-_HALVES
COSTS = -np.log1p(-RATES) - RATES
_WEIGHTS = 1 / (2 + np.abs(_HALVES - 4)) ** 2
LOG_WEIGHTS = np.log(_WEIGHTS / _WEIGHTS.sum())

BANK_SHARES = np.array([0.25, 0.35, 0.2, 0.2])
_LOG_SHARES = np.log(BANK_SHARES)

SHOCK_SHARES = np.array([0.5, 0.25, 0.25])  # of the three sums of a batch
_SHOCK_RATES = 2.0 ** -np.arange(-2.0, 13.0)


def bank_values(gain: Vector, square: Vector, rows: Vector, distance: float) -> Vector:
    """Return the log wealth of bets against ``distance``, for the sums of each window."""
    out = np.empty(rows.size)
    kernel.bank_values(
        gain.ravel(),
        square.ravel(),
        rows,
        distance,
        _LOG_SHARES,
        RATES,
        COSTS,
        LOG_WEIGHTS,
        out,
    )
    return out


def lower_end(gain: Vector, square: Vector, rows: float, level: float) -> float:
    """Return the largest distance that the bets reject at this level; 0 if none."""
    return float(
        kernel.lower_end(gain, square, rows, _LOG_SHARES, RATES, COSTS, LOG_WEIGHTS, -np.log(level))
    )


def boundary(square: float, level: float) -> float:
    """Return b with m(b, square) = 1/level: the sum of payoffs of mean 0 stays below it.

    At all times, but for a probability ``level``, ``square`` being the sum of their squares.
    """
    return float(kernel.boundary(square, RATES, COSTS, LOG_WEIGHTS, -np.log(level)))


def shock_values(gain: Vector, square: Vector, scale: float) -> Vector:
    """Return the log wealth of bets on sums of batches that are symmetric about 0.

    E exp(λx − λ²x²/2) ≤ 1 for a symmetric x, because cosh a ≤ e^{a²/2}. ``gain`` and ``square``
    have a line for each window and a column for each sum; ``scale`` is the usual size of a batch.
    """
    rate = np.concatenate((_SHOCK_RATES, -_SHOCK_RATES)) / scale
    logs = gain[:, :, None] * rate - square[:, :, None] * (rate * rate / 2)
    top = logs.max(axis=(1, 2))
    mean = np.exp(logs - top[:, None, None]).mean(axis=2)
    return np.asarray(top + np.log((mean * SHOCK_SHARES).sum(axis=1)))


def log_sum(logs: Vector) -> float:
    """Return the logarithm of the sum of e^x."""
    top = float(logs.max())
    return top if top == -np.inf else top + float(np.log(np.exp(logs - top).sum()))
