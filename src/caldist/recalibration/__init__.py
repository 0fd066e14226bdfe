"""Monotone maps that calibrate predictions, and limits for what they do."""

from caldist.recalibration._selection import CandidateLoss
from caldist.recalibration.calibration_map import CalibrationMap
from caldist.recalibration.recalibration import Recalibration, evaluate_map, recalibrate
from caldist.recalibration.statement import LossChange

__all__ = [
    "CalibrationMap",
    "CandidateLoss",
    "LossChange",
    "Recalibration",
    "evaluate_map",
    "recalibrate",
]
