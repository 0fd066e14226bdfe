"""Recalibration: monotone maps that calibrate predictions, with proof of what they achieve."""

from caldist.recalibration._selection import CandidateLoss
from caldist.recalibration.calibration_map import CalibrationMap
from caldist.recalibration.recalibration import Recalibration, evaluate_map, recalibrate
from caldist.recalibration.statement import LossChange, RecalibrationBounds

__all__ = [
    "CalibrationMap",
    "CandidateLoss",
    "LossChange",
    "Recalibration",
    "RecalibrationBounds",
    "evaluate_map",
    "recalibrate",
]
