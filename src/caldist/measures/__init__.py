"""One file per measure: its definition, meaning, value and cost."""

from caldist.measures.averaged_two_bin_ce import averaged_two_bin_ce
from caldist.measures.base import Measure
from caldist.measures.binned_ece import binned_ece
from caldist.measures.brier_score import brier_score
from caldist.measures.certification import DistanceBracket, distance_bracket
from caldist.measures.corp import Corp, corp
from caldist.measures.debiased_ece import debiased_ece
from caldist.measures.ecce_mad import ecce_mad
from caldist.measures.ecce_range import ecce_range
from caldist.measures.ece import ece
from caldist.measures.evaluation import Evaluation, Evaluations
from caldist.measures.function_families import polynomials, region
from caldist.measures.interval_ce import interval_ce, optimal_partition
from caldist.measures.kernel_ce import kernel_ce
from caldist.measures.kernel_smoothed_ece import kernel_smoothed_ece
from caldist.measures.log_loss import log_loss
from caldist.measures.lower_distance import lower_distance
from caldist.measures.mmce import mmce
from caldist.measures.normalized_cross_entropy import normalized_cross_entropy
from caldist.measures.post_processing_gap import post_processing_gap
from caldist.measures.random_interval_ce import random_interval_ce
from caldist.measures.smooth_ce import smooth_ce
from caldist.measures.soft_binned_ece import soft_binned_ece
from caldist.measures.surrogate_interval_ce import surrogate_interval_ce
from caldist.measures.sweep_ece import sweep_ece
from caldist.measures.t_cal import TCal, t_cal
from caldist.measures.true_distance import DistanceBounds, true_distance, true_distance_bounds
from caldist.measures.upper_distance import nearest_calibrated, upper_distance
from caldist.measures.weighted_ce import weighted_ce

__all__ = [
    "Corp",
    "DistanceBounds",
    "DistanceBracket",
    "Evaluation",
    "Evaluations",
    "Measure",
    "TCal",
    "averaged_two_bin_ce",
    "binned_ece",
    "brier_score",
    "corp",
    "debiased_ece",
    "distance_bracket",
    "ecce_mad",
    "ecce_range",
    "ece",
    "interval_ce",
    "kernel_ce",
    "kernel_smoothed_ece",
    "log_loss",
    "lower_distance",
    "mmce",
    "nearest_calibrated",
    "normalized_cross_entropy",
    "optimal_partition",
    "polynomials",
    "post_processing_gap",
    "random_interval_ce",
    "region",
    "smooth_ce",
    "soft_binned_ece",
    "surrogate_interval_ce",
    "sweep_ece",
    "t_cal",
    "true_distance",
    "true_distance_bounds",
    "upper_distance",
    "weighted_ce",
]
