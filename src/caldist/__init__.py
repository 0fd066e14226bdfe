"""Measure how far probabilities are from calibrated.

The measures take ``(y_true, y_prob)`` and return a float; :class:`Joint` and :func:`evaluate` do
the same for summaries of large tables.

Names are loaded when they are first used, so that ``import caldist`` costs little more than NumPy.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from caldist import _kernels as _kernels  # says at once if kernels are not compiled
from caldist._version import __version__

if _TYPE_CHECKING:
    from caldist._properties import PropertyTable, properties
    from caldist._util.errors import ToleranceError
    from caldist._versions import show_versions
    from caldist.certificates import Certificate, CertificateError
    from caldist.data.joint import Joint
    from caldist.engines import summarize
    from caldist.inference import (
        Comparison,
        Comparisons,
        GroupEvaluation,
        Interval,
        PopulationBracket,
        Region,
        TestResult,
        calibration_test,
        compare,
        compare_all,
        confidence_interval,
        distance_bracket,
        evaluate_groups,
        sample_size,
    )
    from caldist.measures._kernel_estimators import KernelDraws, kernel_ce_draws
    from caldist.measures.averaged_two_bin_ce import averaged_two_bin_ce
    from caldist.measures.binned_ece import binned_ece
    from caldist.measures.brier_score import brier_score
    from caldist.measures.certification import DistanceBracket, certify
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
    from caldist.reporting import Report, report

_MODULES = {
    "Certificate": "caldist.certificates",
    "CertificateError": "caldist.certificates",
    "Comparison": "caldist.inference",
    "Comparisons": "caldist.inference",
    "Corp": "caldist.measures.corp",
    "DistanceBounds": "caldist.measures.true_distance",
    "DistanceBracket": "caldist.measures.certification",
    "Evaluation": "caldist.measures.evaluation",
    "GroupEvaluation": "caldist.inference",
    "Interval": "caldist.inference",
    "Joint": "caldist.data.joint",
    "KernelDraws": "caldist.measures._kernel_estimators",
    "PopulationBracket": "caldist.inference",
    "PropertyTable": "caldist._properties",
    "Region": "caldist.inference",
    "Report": "caldist.reporting",
    "TCal": "caldist.measures.t_cal",
    "TestResult": "caldist.inference",
    "ToleranceError": "caldist._util.errors",
    "averaged_two_bin_ce": "caldist.measures.averaged_two_bin_ce",
    "binned_ece": "caldist.measures.binned_ece",
    "brier_score": "caldist.measures.brier_score",
    "calibration_test": "caldist.inference",
    "certify": "caldist.measures.certification",
    "compare": "caldist.inference",
    "compare_all": "caldist.inference",
    "confidence_interval": "caldist.inference",
    "corp": "caldist.measures.corp",
    "debiased_ece": "caldist.measures.debiased_ece",
    "distance_bracket": "caldist.inference",
    "ecce_mad": "caldist.measures.ecce_mad",
    "ecce_range": "caldist.measures.ecce_range",
    "ece": "caldist.measures.ece",
    "evaluate": "caldist.measures.evaluation",
    "evaluate_groups": "caldist.inference",
    "interval_ce": "caldist.measures.interval_ce",
    "kernel_ce": "caldist.measures.kernel_ce",
    "kernel_ce_draws": "caldist.measures._kernel_estimators",
    "kernel_smoothed_ece": "caldist.measures.kernel_smoothed_ece",
    "ks_error": "caldist.measures.ks_error",
    "log_loss": "caldist.measures.log_loss",
    "lower_distance": "caldist.measures.lower_distance",
    "mmce": "caldist.measures.mmce",
    "nearest_calibrated": "caldist.measures.upper_distance",
    "normalized_cross_entropy": "caldist.measures.normalized_cross_entropy",
    "one_vs_rest": "caldist.multiclass",
    "optimal_partition": "caldist.measures.interval_ce",
    "properties": "caldist._properties",
    "random_interval_ce": "caldist.measures.random_interval_ce",
    "report": "caldist.reporting",
    "sample_size": "caldist.inference",
    "show_versions": "caldist._versions",
    "skce": "caldist.measures.skce",
    "smooth_ce": "caldist.measures.smooth_ce",
    "soft_binned_ece": "caldist.measures.soft_binned_ece",
    "summarize": "caldist.engines",
    "surrogate_interval_ce": "caldist.measures.surrogate_interval_ce",
    "sweep_ece": "caldist.measures.sweep_ece",
    "t_cal": "caldist.measures.t_cal",
    "top_label": "caldist.multiclass",
    "true_distance": "caldist.measures.true_distance",
    "true_distance_bounds": "caldist.measures.true_distance",
    "upper_distance": "caldist.measures.upper_distance",
    "weighted_ce": "caldist.measures.weighted_ce",
}
_SUBMODULES = {
    "certificates",
    "engines",
    "inference",
    "plots",
    "reporting",
    "sklearn",
    "torch",
    "weights",
}

__all__ = [
    "Certificate",
    "CertificateError",
    "Comparison",
    "Comparisons",
    "Corp",
    "DistanceBounds",
    "DistanceBracket",
    "Evaluation",
    "GroupEvaluation",
    "Interval",
    "Joint",
    "KernelDraws",
    "PopulationBracket",
    "PropertyTable",
    "Region",
    "Report",
    "TCal",
    "TestResult",
    "ToleranceError",
    "__version__",
    "averaged_two_bin_ce",
    "binned_ece",
    "brier_score",
    "calibration_test",
    "certify",
    "compare",
    "compare_all",
    "confidence_interval",
    "corp",
    "debiased_ece",
    "distance_bracket",
    "ecce_mad",
    "ecce_range",
    "ece",
    "evaluate",
    "evaluate_groups",
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
    "report",
    "sample_size",
    "show_versions",
    "skce",
    "smooth_ce",
    "soft_binned_ece",
    "summarize",
    "surrogate_interval_ce",
    "sweep_ece",
    "t_cal",
    "top_label",
    "true_distance",
    "true_distance_bounds",
    "upper_distance",
    "weighted_ce",
]


def __getattr__(name: str) -> _Any:
    """Load a public name or submodule on its first use."""
    if name in _SUBMODULES:
        return _import_module(f"caldist.{name}")
    if name not in _MODULES:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    value = getattr(_import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_SUBMODULES})
