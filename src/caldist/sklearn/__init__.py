"""Recalibration by estimators of scikit-learn, and measures as scorers.

Needs scikit-learn 1.6 or later. Nothing else in the package imports this module.
"""

from caldist.sklearn._scorers import SCORERS, CalibrationScorer
from caldist.sklearn.classifier import RecalibratedClassifier
from caldist.sklearn.monotone import MonotoneCalibrator

__all__ = [
    "SCORERS",
    "CalibrationScorer",
    "MonotoneCalibrator",
    "RecalibratedClassifier",
]
