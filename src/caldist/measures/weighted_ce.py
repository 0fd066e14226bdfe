"""The weighted calibration error over a finite family of functions, wCE."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caldist.data.joint import Joint

__all__ = ["weighted_ce", "weighted_ce_of"]

Vector = NDArray[np.float64]
WeightFunction = Callable[[Vector], ArrayLike]


def weighted_ce(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    functions: Iterable[WeightFunction],
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Return the largest correlation of the residuals with any of the functions.

    .. math:: \mathrm{wCE} = \max_{w \in W} |E[(y - v)\,w(v)]|

    **What it means.** 0 for perfectly calibrated predictions, whatever the functions. The converse
    depends on the family: a finite one cannot see every miscalibration.

    **What it estimates.** The population's value over the same functions, at rate 1/√n.

    **Cost.** O(n log n), a sort, and one evaluation of each function on the distinct predictions.

    Parameters
    ----------
    y_true : array-like of 0 and 1
    y_prob : array-like in [0, 1]
        The predicted probability of label 1.
    functions : list of callables
        Each takes the array of distinct predictions and returns as many finite values.
        :mod:`caldist.weights` makes common ones.
    sample_weight : array-like, optional

    Examples
    --------
    >>> import caldist
    >>> from caldist.weights import polynomials
    >>> caldist.weighted_ce([0, 1, 0, 1], [0.25, 0.5, 0.5, 0.75], functions=polynomials(2))
    0.03125
    """
    family = _check_functions(functions)
    joint = Joint.from_arrays(y_true, y_prob, sample_weight=sample_weight)
    return weighted_ce_of(joint, functions=family)


def weighted_ce_of(joint: Joint, *, functions: Iterable[WeightFunction]) -> float:
    """Return wCE of a joint distribution."""
    residual = joint.residual()
    return max(
        abs(float(residual @ _values(function, at, joint.prediction)))
        for at, function in enumerate(functions)
    )


def _check_functions(functions: object) -> list[WeightFunction]:
    if callable(functions):
        message = "functions is one function; pass a list, functions=[…]."
        raise TypeError(message)
    if not isinstance(functions, Iterable):
        message = f"functions is {functions!r}; it must be a list of functions."
        raise TypeError(message)
    family = list(functions)
    if not family:
        message = "functions is empty: at least one function is needed."
        raise ValueError(message)
    for at, function in enumerate(family):
        if not callable(function):
            message = f"functions[{at}] is {function!r}; it must be callable."
            raise TypeError(message)
    return family


def _values(function: WeightFunction, at: int, prediction: Vector) -> Vector:
    values = np.asarray(function(prediction))
    if values.shape not in {(), prediction.shape} or values.dtype.kind not in "buif":
        message = (
            f"functions[{at}] returned shape {values.shape} and dtype {values.dtype} for "
            f"{prediction.size} predictions; it must return as many real numbers."
        )
        raise ValueError(message)
    result = np.broadcast_to(values, prediction.shape).astype(np.float64)
    if not np.isfinite(result).all():
        bad = int(np.argmin(np.isfinite(result)))
        message = f"functions[{at}] returned {result[bad]} at the prediction {prediction[bad]}."
        raise ValueError(message)
    return result
