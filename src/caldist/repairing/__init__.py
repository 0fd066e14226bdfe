"""Repair: monotone maps that calibrate predictions, with proof of what they achieve."""

from caldist.repairing._select import CandidateLoss
from caldist.repairing._statement import LossChange, RepairBounds
from caldist.repairing.calibration_map import CalibrationMap
from caldist.repairing.repair import Repair, certify_map, repair

__all__ = [
    "CalibrationMap",
    "CandidateLoss",
    "LossChange",
    "Repair",
    "RepairBounds",
    "certify_map",
    "repair",
]
