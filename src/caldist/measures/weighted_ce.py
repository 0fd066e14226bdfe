"""The weighted calibration error over a finite family of functions, wCE."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import ArrayLike

from caldist._util.products import dot
from caldist._util.types import Vector
from caldist.data.joint import Joint
from caldist.data.rows import Rows
from caldist.errors import InvalidInput, InvalidType
from caldist.measures import polynomials
from caldist.measures.base import measure
from caldist.measures.norms import Norm

WeightFunction = Callable[[Vector], ArrayLike]


class WeightedNorm(Norm):
    """wCE: a finite family of functions and their negatives."""

    def __init__(self, prediction: Vector, *, functions: Iterable[WeightFunction]) -> None:
        super().__init__(prediction)
        family = _check_functions(functions)
        self.values = np.array(
            [_values(function, at, prediction) for at, function in enumerate(family)]
        )
        self.bound = float(np.abs(self.values).max())
        # Of k means: the root of the sum of their squares, or the maximum of sub-Gaussian ones.
        k = len(family)
        self.noise = self.bound * math.sqrt(min(k, 2 * math.log(2 * k)))

    def __call__(self, masses: Vector) -> float:
        """Return the norm of masses on the support."""
        return float(np.abs(self._correlations(masses)).max())

    def witness(self, masses: Vector) -> Vector:
        """Return the function of the family that attains the norm, or its negative."""
        correlation = self._correlations(masses)
        best = int(np.argmax(np.abs(correlation)))
        sign = 1.0 if correlation[best] >= 0 else -1.0
        return np.asarray(sign * self.values[best])

    def _correlations(self, masses: Vector) -> Vector:
        return np.array([dot(masses, values) for values in self.values])

    def candidates(self, masses: Vector, noise: float) -> Vector | None:  # noqa: ARG002
        """Return all functions: one of them, or its negative, is the population's witness."""
        return self.values


@measure(
    symbol="wCE",
    summary="largest correlation of the residuals with one of the given functions",
    position=200,
    norm=WeightedNorm,
    ceiling=math.inf,
    flips=False,
    example={"functions": polynomials(2)},
)
def weighted_ce(
    y_true: ArrayLike | Joint,
    y_prob: ArrayLike | None = None,
    *,
    functions: Iterable[WeightFunction],
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    r"""Return the largest correlation of the residuals with any of the functions.

    .. math:: \mathrm{wCE} = \max_{w \in W} |E[(y - v)\,w(v)]|

    **What it means.** 0 for perfectly calibrated predictions, whatever the functions. The converse
    depends on the family: a finite one cannot see every miscalibration.

    **What it estimates.** The population's value over the same functions, at rate 1/√n.

    **Cost.** O(n log n), a sort, and one evaluation of each function on the distinct predictions.

    Parameters
    ----------
    y_true : array-like of 0 and 1, or Joint
        A joint stands for labels, predictions and weights at once.
    y_prob : array-like in [0, 1]
        The predicted probability of label 1.
    functions : list of callables
        Each takes the array of distinct predictions and returns as many finite values.
        :mod:`caldist.measures` makes common ones.
    sample_weight : array-like, optional
    pos_label : optional
        The value of ``y_true`` that counts as label 1, where labels are not 0 and 1.

    Examples
    --------
    >>> import caldist
    >>> from caldist.measures import polynomials
    >>> caldist.weighted_ce([0, 1, 0, 1], [0.25, 0.5, 0.5, 0.75], functions=polynomials(2))
    0.03125
    """
    family = _check_functions(functions)
    rows = Rows.of(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
    prediction, residual = rows.residuals
    return max(
        abs(dot(residual, _values(function, at, prediction))) for at, function in enumerate(family)
    )


def _check_functions(functions: object) -> list[WeightFunction]:
    if callable(functions):
        reason, remedy = "is one function, but a list is needed", "Pass functions=[…]."
        raise InvalidType(argument="functions", reason=reason, remedy=remedy)
    if not isinstance(functions, Iterable):
        reason = "it must be a list of functions"
        raise InvalidType(argument="functions", value=functions, reason=reason)
    family = list(functions)
    if not family:
        remedy = "Pass at least one function."
        raise InvalidInput(argument="functions", reason="is empty", remedy=remedy)
    for at, function in enumerate(family):
        if not callable(function):
            reason = "it must be callable"
            raise InvalidType(argument="functions", index=at, value=function, reason=reason)
    return family


def _values(function: WeightFunction, at: int, prediction: Vector) -> Vector:
    values = np.asarray(function(prediction))
    if values.shape not in {(), prediction.shape} or values.dtype.kind not in "buif":
        raise InvalidInput(
            argument="functions",
            index=at,
            reason=f"returned shape {values.shape} and dtype {values.dtype} for {prediction.size} "
            "predictions, but it must return as many real numbers",
        )
    result = np.broadcast_to(values, prediction.shape).astype(np.float64)
    if not np.isfinite(result).all():
        bad = int(np.argmin(np.isfinite(result)))
        reason = f"returned {result[bad]} at the prediction {prediction[bad]}, which is not finite"
        raise InvalidInput(argument="functions", index=at, reason=reason)
    return result
