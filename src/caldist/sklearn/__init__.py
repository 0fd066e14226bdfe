"""Repairs as estimators of scikit-learn.

Needs scikit-learn 1.6 or later. Nothing else in the package imports this module.
"""

from caldist.sklearn.classifier import RepairedClassifier
from caldist.sklearn.nearest import NearestCalibrator
from caldist.sklearn.slope import SlopeCalibrator

__all__ = ["NearestCalibrator", "RepairedClassifier", "SlopeCalibrator"]
