"""The registry of measures: what each is called, how it is computed and how it behaves.

Whatever has to go over all measures (:func:`caldist.evaluate`, the demo, the contract tests, the
documentation) goes over this table. A new measure is a file of its own and one entry here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from caldist.data.joint import Joint
from caldist.measures import _rounding, _rounding_prior
from caldist.measures.averaged_two_bin_ce import averaged_two_bin_ce, averaged_two_bin_ce_of
from caldist.measures.binned_ece import binned_ece, binned_ece_of
from caldist.measures.brier_score import brier_score, brier_score_of
from caldist.measures.ecce_mad import ecce_mad, ecce_mad_of
from caldist.measures.ecce_range import ecce_range, ecce_range_of
from caldist.measures.ece import ece, ece_of
from caldist.measures.interval_ce import interval_ce, interval_ce_of
from caldist.measures.kernel_ce import kernel_ce, kernel_ce_of
from caldist.measures.kernel_smoothed_ece import kernel_smoothed_ece, kernel_smoothed_ece_of
from caldist.measures.lower_distance import TOLERANCE, lower_distance, lower_distance_of
from caldist.measures.mmce import mmce, mmce_of
from caldist.measures.random_interval_ce import random_interval_ce, random_interval_ce_of
from caldist.measures.smooth_ce import smooth_ce, smooth_ce_of
from caldist.measures.soft_binned_ece import soft_binned_ece, soft_binned_ece_of
from caldist.measures.surrogate_interval_ce import (
    surrogate_interval_ce,
    surrogate_interval_ce_of,
)
from caldist.measures.upper_distance import upper_distance, upper_distance_of

__all__ = ["MEASURES", "Measure"]


@dataclass(frozen=True)
class Measure:
    """One measure with its default options.

    Attributes
    ----------
    name
        The public name.
    symbol
        What the literature calls it.
    function
        The public function of arrays.
    of_joint
        The same on a joint distribution.
    summary
        One line for tables.
    rounding
        What rounded predictions can do to it; None if it moves without bound.
    tolerance
        How far the exact value may lie above the value; 0 for exact measures.
    flips
        Whether exchanging the labels (v -> 1 - v, y -> 1 - y) leaves it unchanged.
    """

    name: str
    symbol: str
    function: Callable[..., float]
    of_joint: Callable[[Joint], float]
    summary: str
    rounding: _rounding.Bounds | None = None
    tolerance: float = 0.0
    flips: bool = True


MEASURES: dict[str, Measure] = {
    measure.name: measure
    for measure in (
        Measure(
            "smooth_ce",
            "smCE",
            smooth_ce,
            smooth_ce_of,
            "largest correlation of the residuals with a Lipschitz function",
            _rounding.smooth_bounds,
        ),
        Measure(
            "kernel_ce",
            "kCE",
            kernel_ce,
            kernel_ce_of,
            "largest correlation of the residuals with the unit ball of the Laplace kernel",
            _rounding.kernel_bounds,
        ),
        Measure(
            "lower_distance",
            "ldCE",
            lower_distance,
            lower_distance_of,
            "least distance to calibration that predictions and labels allow",
            _rounding.lower_distance_bounds,
            tolerance=TOLERANCE,
        ),
        Measure(
            "upper_distance",
            "udCE",
            upper_distance,
            upper_distance_of,
            "least change of the predictions by a map; beyond 17 of them a bound from above",
            flips=False,  # where it is a bound, the search may end elsewhere
        ),
        Measure(
            "interval_ce",
            "intCE",
            interval_ce,
            interval_ce_of,
            "best binned error plus average bin width",
        ),
        Measure(
            "surrogate_interval_ce",
            "SintCE",
            surrogate_interval_ce,
            surrogate_interval_ce_of,
            "best dyadic width plus its error over random shifts",
            _rounding.surrogate_interval_bounds,
        ),
        Measure(
            "random_interval_ce",
            "RintCE(0.1)",
            random_interval_ce,
            random_interval_ce_of,
            "binned error averaged over all shifts of bins of width 0.1",
            _rounding.random_interval_bounds,
        ),
        Measure(
            "binned_ece",
            "binnedECE(20)",
            binned_ece,
            binned_ece_of,
            "binned error of 20 bins of equal width",
            flips=False,  # a prediction on a bin edge changes its bin
        ),
        Measure("ece", "ECE", ece, ece_of, "mean deviation of frequency from prediction"),
        Measure(
            "kernel_smoothed_ece",
            "smECE",
            kernel_smoothed_ece,
            kernel_smoothed_ece_of,
            "ECE after Gaussian smoothing over as much as it measures",
            _rounding_prior.kernel_smoothed_bounds,
        ),
        Measure(
            "soft_binned_ece",
            "SB-ECE(15)",
            soft_binned_ece,
            soft_binned_ece_of,
            "root mean square error of 15 soft bins",
        ),
        Measure(
            "mmce",
            "MMCE",
            mmce,
            mmce_of,
            "kernel error of the confidence, Laplace kernel of bandwidth 0.4",
            flips=False,  # at 1/2 label 0 counts as predicted
        ),
        Measure(
            "ecce_mad",
            "ECCE-MAD",
            ecce_mad,
            ecce_mad_of,
            "largest cumulative difference of labels and predictions",
            _rounding_prior.ecce_mad_bounds,
            flips=False,  # sums count from the other end
        ),
        Measure(
            "ecce_range",
            "ECCE-R",
            ecce_range,
            ecce_range_of,
            "range of the cumulative differences",
            _rounding_prior.ecce_range_bounds,
        ),
        Measure(
            "averaged_two_bin_ce",
            "ATB",
            averaged_two_bin_ce,
            averaged_two_bin_ce_of,
            "squared bias of two bins, averaged over the threshold",
            _rounding_prior.averaged_two_bin_bounds,
        ),
        Measure(
            "brier_score",
            "Brier",
            brier_score,
            brier_score_of,
            "mean squared error: calibration and sharpness together",
            _rounding_prior.brier_bounds,
        ),
    )
}
