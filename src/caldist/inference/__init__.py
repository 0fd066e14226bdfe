"""Intervals, tests and comparisons: what a sample says of the population it comes from."""

from caldist.inference._rates import Rates
from caldist.inference.bracket import PopulationBracket, distance_bracket
from caldist.inference.calibration_curve import CalibrationCurve, calibration_curve
from caldist.inference.calibration_summary import (
    CalibrationSummary,
    CoxTest,
    Estimate,
    calibration_summary,
)
from caldist.inference.comparison import Comparison, Comparisons, compare, compare_all
from caldist.inference.gates import Gate, gate
from caldist.inference.groups import Group, GroupEvaluation, evaluate_groups
from caldist.inference.intervals import Interval, confidence_interval
from caldist.inference.net_benefit import NetBenefit, net_benefit
from caldist.inference.planning import SampleSize, interval_width, sample_size
from caldist.inference.regions import Region, Regions, miscalibrated_regions
from caldist.inference.testing import TestResult, calibration_test

__all__ = [
    "CalibrationCurve",
    "CalibrationSummary",
    "Comparison",
    "Comparisons",
    "CoxTest",
    "Estimate",
    "Gate",
    "Group",
    "GroupEvaluation",
    "Interval",
    "NetBenefit",
    "PopulationBracket",
    "Rates",
    "Region",
    "Regions",
    "SampleSize",
    "TestResult",
    "calibration_curve",
    "calibration_summary",
    "calibration_test",
    "compare",
    "compare_all",
    "confidence_interval",
    "distance_bracket",
    "evaluate_groups",
    "gate",
    "interval_width",
    "miscalibrated_regions",
    "net_benefit",
    "sample_size",
]
