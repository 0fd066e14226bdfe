"""Clinical measures: slope and intercept, net benefit, calibration curves."""

from caldist.clinical.calibration_curve import CalibrationCurve, calibration_curve
from caldist.clinical.calibration_summary import (
    CalibrationSummary,
    CoxTest,
    calibration_summary,
)
from caldist.clinical.net_benefit import NetBenefit, net_benefit
from caldist.clinical.rates import Rates

__all__ = [
    "CalibrationCurve",
    "CalibrationSummary",
    "CoxTest",
    "NetBenefit",
    "Rates",
    "calibration_curve",
    "calibration_summary",
    "net_benefit",
]
