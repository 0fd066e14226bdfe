"""Measure how far probabilities are from calibrated.

The measures take ``(y_true, y_prob)`` and return a float; :class:`Joint` and :func:`evaluate` do
the same for summaries of large tables.
"""

from caldist._errors import ToleranceError
from caldist._properties import PropertyTable, properties
from caldist._version import __version__
from caldist._versions import show_versions
from caldist.certificates import Certificate, CertificateError
from caldist.joint import Joint
from caldist.measures._kernel_estimators import KernelDraws, kernel_ce_draws
from caldist.measures.averaged_two_bin_ce import averaged_two_bin_ce
from caldist.measures.binned_ece import binned_ece
from caldist.measures.brier_score import brier_score
from caldist.measures.certification import DistanceBracket, certify, distance_bracket
from caldist.measures.corp import Corp, corp
from caldist.measures.debiased_ece import debiased_ece
from caldist.measures.ecce_mad import ecce_mad
from caldist.measures.ecce_range import ecce_range
from caldist.measures.ece import ece
from caldist.measures.evaluation import Evaluation, evaluate
from caldist.measures.interval_ce import interval_ce, optimal_partition
from caldist.measures.kernel_ce import kernel_ce
from caldist.measures.kernel_smoothed_ece import kernel_smoothed_ece
from caldist.measures.ks_error import ks_error
from caldist.measures.log_loss import log_loss
from caldist.measures.lower_distance import lower_distance
from caldist.measures.mmce import mmce
from caldist.measures.normalized_cross_entropy import normalized_cross_entropy
from caldist.measures.random_interval_ce import random_interval_ce
from caldist.measures.skce import skce
from caldist.measures.smooth_ce import smooth_ce
from caldist.measures.soft_binned_ece import soft_binned_ece
from caldist.measures.surrogate_interval_ce import surrogate_interval_ce
from caldist.measures.sweep_ece import sweep_ece
from caldist.measures.t_cal import TCal, t_cal
from caldist.measures.true_distance import DistanceBounds, true_distance, true_distance_bounds
from caldist.measures.upper_distance import nearest_calibrated, upper_distance
from caldist.measures.weighted_ce import weighted_ce
from caldist.multiclass import one_vs_rest, top_label

__all__ = [
    "Certificate",
    "CertificateError",
    "Corp",
    "DistanceBounds",
    "DistanceBracket",
    "Evaluation",
    "Joint",
    "KernelDraws",
    "PropertyTable",
    "TCal",
    "ToleranceError",
    "__version__",
    "averaged_two_bin_ce",
    "binned_ece",
    "brier_score",
    "certify",
    "corp",
    "debiased_ece",
    "distance_bracket",
    "ecce_mad",
    "ecce_range",
    "ece",
    "evaluate",
    "interval_ce",
    "kernel_ce",
    "kernel_ce_draws",
    "kernel_smoothed_ece",
    "ks_error",
    "log_loss",
    "lower_distance",
    "mmce",
    "nearest_calibrated",
    "normalized_cross_entropy",
    "one_vs_rest",
    "optimal_partition",
    "properties",
    "random_interval_ce",
    "show_versions",
    "skce",
    "smooth_ce",
    "soft_binned_ece",
    "surrogate_interval_ce",
    "sweep_ece",
    "t_cal",
    "top_label",
    "true_distance",
    "true_distance_bounds",
    "upper_distance",
    "weighted_ce",
]
