"""Recalibration: monotone maps that calibrate predictions, with proof of what they achieve."""

from caldist.recalibration._selection import CandidateLoss
from caldist.recalibration.calibration_map import CalibrationMap
from caldist.recalibration.recalibration import Recalibration, certify_map, recalibrate
from caldist.recalibration.statement import LossChange

__all__ = [
    "CalibrationMap",
    "CandidateLoss",
    "LossChange",
    "Recalibration",
    "certify_map",
    "recalibrate",
]
