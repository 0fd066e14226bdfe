"""Repairs as estimators of scikit-learn, and measures as scorers.

Needs scikit-learn 1.6 or later. Nothing else in the package imports this module.
"""

from caldist.sklearn._scorers import SCORERS, CalibrationScorer
from caldist.sklearn.classifier import RepairedClassifier
from caldist.sklearn.monotone import SlopeCalibrator

__all__ = [
    "SCORERS",
    "CalibrationScorer",
    "RepairedClassifier",
    "SlopeCalibrator",
]
