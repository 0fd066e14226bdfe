"""Repair: monotone maps that calibrate predictions, with proof of what they achieve."""

from caldist.recalibration._selection import CandidateLoss
from caldist.recalibration.calibration_map import CalibrationMap
from caldist.recalibration.recalibration import Repair, certify_map, repair
from caldist.recalibration.statement import LossChange, RepairBounds

__all__ = [
    "CalibrationMap",
    "CandidateLoss",
    "LossChange",
    "Repair",
    "RepairBounds",
    "certify_map",
    "repair",
]
