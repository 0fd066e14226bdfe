"""Intervals, tests, gates and comparisons: statements about the population."""

from caldist.inference.comparison import Comparison, Comparisons, compare, compare_all
from caldist.inference.gates import Gate, gate
from caldist.inference.intervals import Interval, confidence_interval
from caldist.inference.planning import SampleSize, guaranteed_width, sample_size
from caldist.inference.regions import Region, Regions, miscalibrated_regions
from caldist.inference.testing import TestResult, calibration_test

__all__ = [
    "Comparison",
    "Comparisons",
    "Gate",
    "Interval",
    "Region",
    "Regions",
    "SampleSize",
    "TestResult",
    "calibration_test",
    "compare",
    "compare_all",
    "confidence_interval",
    "gate",
    "guaranteed_width",
    "miscalibrated_regions",
    "sample_size",
]
