r"""Measures that are norms of the residual masses.

Each is a supremum over functions, ‖c‖ = sup_w Σ c_i w(v_i), so it is defined for any masses c on
the support: for resampled ones, for differences, for those of a population. The function that
attains the supremum is the witness.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caldist import _validate
from caldist._kernels import replicates, rkhs, shifts, smooth
from caldist.measures.random_interval_ce import DEFAULT_WIDTH
from caldist.measures.weighted_ce import WeightFunction, _check_functions, _values

__all__ = [
    "NORMS",
    "KernelNorm",
    "Norm",
    "RandomIntervalNorm",
    "SmoothNorm",
    "WeightedNorm",
    "make_norm",
    "prefix_sums",
]

Vector = NDArray[np.float64]

_ROUNDING = 1 + 1e-9  # makes a bound certain in spite of rounding
_TERMS = 25  # of the Gaussian's series; what they leave out is below 1e-16
_REACH = 6  # bandwidths; beyond them the Gaussian is below 1e-15


class Norm(ABC):
    """A norm of residual masses on a support of increasing predictions.

    ``bound`` is the largest absolute value that a function of the family takes on [0, 1], and
    ``noise`` is a number with E‖c_n − c‖ ≤ noise/√n for the masses c_n of n independent rows of a
    population c, whatever the population.
    """

    bound: float = 1.0
    noise: float

    def __init__(self, prediction: Vector) -> None:
        self.prediction = prediction

    @abstractmethod
    def __call__(self, masses: Vector) -> float:
        """Return the norm of masses on the support."""

    def unless_below(self, masses: Vector, threshold: float) -> float:
        """Return the norm, or any number between it and the threshold if it is below that.

        It is for quantiles, where all replicates below some height are alike.
        """
        del threshold
        return self(masses)

    @abstractmethod
    def witness(self, masses: Vector) -> Vector:
        """Return w(v_i) of a function of the family with Σ c_i w(v_i) = ‖c‖."""

    def witnesses(self, masses: Vector) -> Vector:
        """Return all extreme functions that attain the norm, a row each; one as a rule."""
        return self.witness(masses)[None, :]

    def candidates(self, masses: Vector, noise: float) -> Vector | None:  # noqa: ARG002
        """Return functions among which the population's witness is well represented, or None.

        ``noise`` is what the norm is without any miscalibration. None means that the witness is
        not to be trusted, and any function of the family may be the population's.
        """
        return self.witnesses(masses)


class SmoothNorm(Norm):
    """smCE: functions that are 1-Lipschitz and between -1 and 1."""

    noise = 1 + math.sqrt(0.5)

    def __call__(self, masses: Vector) -> float:
        return float(smooth.smooth_ce(self.prediction, masses, np.empty(0)))

    def unless_below(self, masses: Vector, threshold: float) -> float:
        """Return a bound that is a tenth of the work, and on noise a few percent above."""
        bound = _ROUNDING * float(replicates.smooth_ce_bound(self.prediction, masses))
        return bound if bound < threshold else self(masses)

    def witness(self, masses: Vector) -> Vector:
        curve, height = np.empty_like(masses), np.empty_like(masses)
        smooth.smooth_ce(self.prediction, masses, curve)
        smooth.witness(self.prediction, masses, curve, height)
        return height

    def witnesses(self, masses: Vector) -> Vector:
        """Return the witness, or both extremes where masses that add up to 0 leave its height free.

        Any other sum pushes the witness up to 1 or down to -1 somewhere. At 0 it may be all 0, and
        its error too, as if the mean of the residuals were known.
        """
        height = self.witness(masses)
        if np.abs(height).max() > 1 - 1e-9:
            return height[None, :]
        return np.array([height + (1 - height.max()), height - (1 + height.min())])


class KernelNorm(Norm):
    """kCE: the unit ball of the Hilbert space of the Laplace or the Gaussian kernel."""

    noise = 1.0

    def __init__(
        self, prediction: Vector, *, kernel: str = "laplace", bandwidth: float = 1.0
    ) -> None:
        super().__init__(prediction)
        if callable(kernel):
            message = (
                "kernel is a function; replicates are fast and proved for kernel='laplace' and "
                "kernel='gaussian' only."
            )
            raise ValueError(message)  # noqa: TRY004 -- kernel_ce itself takes functions
        _validate.check_choice("kernel", kernel, ("laplace", "gaussian"))
        self.kernel = kernel
        self.bandwidth = _validate.check_positive("bandwidth", bandwidth)

    def __call__(self, masses: Vector) -> float:
        square = rkhs.laplace_squared if self.kernel == "laplace" else rkhs.gaussian_squared
        return math.sqrt(max(0.0, square(self.prediction, masses, self.bandwidth)))

    def witness(self, masses: Vector) -> Vector:
        """Return Kc/‖c‖, or 0 where ‖c‖ is 0."""
        if self.kernel == "laplace":
            potential = np.empty_like(masses)
            replicates.laplace_potential(self.prediction, masses, self.bandwidth, potential)
        else:
            potential = _gaussian_potential(self.prediction / self.bandwidth, masses)
        norm = self(masses)
        return potential / norm if norm > 0 else np.zeros_like(masses)

    def candidates(self, masses: Vector, noise: float) -> Vector | None:
        """Trust the witness once the norm stands out of the noise."""
        return None if self(masses) < 2 * noise else super().candidates(masses, noise)


def _gaussian_potential(x: Vector, masses: Vector) -> Vector:
    """Return Σ_j c_j exp(−(x_i − x_j)²) for each i.

    Around the centre of a cell of width 1, with u and z the distances of x_j and x_i from it,
    exp(−(z − u)²) = exp(−z²) Σ_k (2z)^k/k! · exp(−u²) u^k: a few moments for each cell.
    """
    out = np.zeros_like(masses)
    cell = np.floor(x - x[0])
    start = np.flatnonzero(np.concatenate(([True], cell[1:] != cell[:-1])))
    for first, end in zip(start, np.append(start[1:], x.size), strict=True):
        centre = x[0] + cell[first] + 0.5
        u = x[first:end] - centre
        moment = masses[first:end] * np.exp(-(u**2))
        near = slice(*np.searchsorted(x, (centre - _REACH - 0.5, centre + _REACH + 0.5)))
        z = x[near] - centre
        factor = np.exp(-(z**2))
        for k in range(_TERMS):
            out[near] += factor * moment.sum()
            moment *= u
            factor *= 2 * z / (k + 1)
    return out


def prefix_sums(masses: Vector) -> Vector:
    """Return 0 and the sums of the first 1, 2, … masses."""
    sums = np.empty(masses.size + 1)
    sums[0] = 0.0
    np.cumsum(masses, out=sums[1:])
    return sums


class RandomIntervalNorm(Norm):
    """RintCE: averages over the shift of signs that are constant on bins of one width."""

    def __init__(self, prediction: Vector, *, width: float = DEFAULT_WIDTH) -> None:
        super().__init__(prediction)
        self.width = _validate.check_positive("width", width)
        # The window sums have variance p/n, p the mass in the window; the root's integral over
        # the windows, of length 1 + width, is largest where p is the same for all.
        self.noise = math.sqrt(1 + 1 / self.width)

    def __call__(self, masses: Vector) -> float:
        return self.of_sums(prefix_sums(masses))

    def of_sums(self, sums: Vector) -> float:
        """Return the norm from prefix sums, which norms of several widths can share."""
        return float(shifts.random_interval_ce(self.prediction, sums, self.width))

    def witness(self, masses: Vector) -> Vector:
        """Return the mean, over the windows [t, t + width) that hold v_i, of their sums' signs."""
        v, width = self.prediction, self.width
        sums = prefix_sums(masses)
        edge = np.sort(np.concatenate((v - width, v)))
        middle = (edge[:-1] + edge[1:]) / 2
        inside = sums[np.searchsorted(v, middle + width)] - sums[np.searchsorted(v, middle)]
        area = np.concatenate(([0.0], np.cumsum(np.sign(inside) * np.diff(edge))))
        return (area[np.searchsorted(edge, v)] - area[np.searchsorted(edge, v - width)]) / width

    def candidates(self, masses: Vector, noise: float) -> Vector | None:  # noqa: ARG002
        """Trust no witness: it follows the noise of every bin."""
        return None


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
        return max(abs(float(masses @ values)) for values in self.values)

    def witness(self, masses: Vector) -> Vector:
        correlation = self.values @ masses
        best = int(np.argmax(np.abs(correlation)))
        sign = 1.0 if correlation[best] >= 0 else -1.0
        return np.asarray(sign * self.values[best])

    def candidates(self, masses: Vector, noise: float) -> Vector | None:  # noqa: ARG002
        """Return all functions: one of them, or its negative, is the population's witness."""
        return self.values


NORMS: dict[str, Callable[..., Norm]] = {
    "smooth_ce": SmoothNorm,
    "kernel_ce": KernelNorm,
    "random_interval_ce": RandomIntervalNorm,
    "weighted_ce": WeightedNorm,
}
_OPTIONS = {
    "smooth_ce": (),
    "kernel_ce": ("kernel", "bandwidth"),
    "random_interval_ce": ("width",),
    "weighted_ce": ("functions",),
}


def make_norm(measure: str, prediction: Vector, **options: Any) -> Norm:
    """Return the norm that a measure is, on a support.

    ``options`` are those of the measure's public function that say which norm it is: ``kernel``
    and ``bandwidth`` of ``kernel_ce``, ``width`` of ``random_interval_ce``, ``functions`` of
    ``weighted_ce``. Another one is a ``TypeError``.
    """
    known = _OPTIONS[measure]
    for name in options:
        if name not in known:
            listed = " and ".join(known) if known else "no options"
            message = f"{name} is not an option of {measure} here, which takes {listed}."
            raise TypeError(message)
    if measure == "weighted_ce" and "functions" not in options:
        message = "weighted_ce needs functions=[…]: see caldist.weights for common ones."
        raise TypeError(message)
    return NORMS[measure](prediction, **options)
