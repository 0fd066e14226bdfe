r"""Measures that are norms of the residual masses.

Each is a supremum over functions, ‖c‖ = sup_w Σ c_i w(v_i), so it is defined for any masses c on
the support: for resampled ones, for differences, for those of a population. The function that
attains the supremum is the witness.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from caldist._util.types import Vector


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

    def attained(self, masses: Vector) -> tuple[float, Vector]:
        """Return the norm and all extreme functions that attain it."""
        return self(masses), self.witnesses(masses)

    def candidates(self, masses: Vector, noise: float) -> Vector | None:  # noqa: ARG002
        """Return functions among which the population's witness is well represented, or None.

        ``noise`` is what the norm is without any miscalibration. None means that the witness is
        not to be trusted, and any function of the family may be the population's.
        """
        return self.witnesses(masses)
