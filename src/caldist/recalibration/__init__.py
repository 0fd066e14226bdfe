"""Monotone maps that calibrate predictions, and limits for what they do."""

from caldist.recalibration._selection import CandidateLoss
from caldist.recalibration.calibration_map import CalibrationMap
from caldist.recalibration.recalibration import Recalibration, certify_map, recalibrate
from caldist.recalibration.statement import LossChange, RecalibrationBounds

__all__ = [
    "CalibrationMap",
    "CandidateLoss",
    "LossChange",
    "Recalibration",
    "RecalibrationBounds",
    "certify_map",
    "recalibrate",
]
