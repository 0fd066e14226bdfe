"""Measure how far probabilities are from calibrated.

The measures take ``(y_true, y_prob)`` and return a float; :class:`Joint` and :func:`evaluate` do
the same for summaries of large tables.
"""

from caldist._errors import ToleranceError
from caldist._version import __version__
from caldist._versions import show_versions
from caldist.certificates import Certificate, CertificateError
from caldist.joint import Joint
from caldist.measures._kernel_estimators import KernelDraws, kernel_ce_draws
from caldist.measures.binned_ece import binned_ece
from caldist.measures.certification import DistanceBracket, certify, distance_bracket
from caldist.measures.ece import ece
from caldist.measures.evaluation import Evaluation, evaluate
from caldist.measures.interval_ce import interval_ce, optimal_partition
from caldist.measures.kernel_ce import kernel_ce
from caldist.measures.lower_distance import lower_distance
from caldist.measures.random_interval_ce import random_interval_ce
from caldist.measures.smooth_ce import smooth_ce
from caldist.measures.surrogate_interval_ce import surrogate_interval_ce
from caldist.measures.true_distance import DistanceBounds, true_distance, true_distance_bounds
from caldist.measures.upper_distance import nearest_calibrated, upper_distance
from caldist.measures.weighted_ce import weighted_ce
from caldist.multiclass import one_vs_rest, top_label

__all__ = [
    "Certificate",
    "CertificateError",
    "DistanceBounds",
    "DistanceBracket",
    "Evaluation",
    "Joint",
    "KernelDraws",
    "ToleranceError",
    "__version__",
    "binned_ece",
    "certify",
    "distance_bracket",
    "ece",
    "evaluate",
    "interval_ce",
    "kernel_ce",
    "kernel_ce_draws",
    "lower_distance",
    "nearest_calibrated",
    "one_vs_rest",
    "optimal_partition",
    "random_interval_ce",
    "show_versions",
    "smooth_ce",
    "surrogate_interval_ce",
    "top_label",
    "true_distance",
    "true_distance_bounds",
    "upper_distance",
    "weighted_ce",
]
