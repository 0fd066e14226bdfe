"""Figures that keep the numbers they show, like scikit-learn's displays.

Each display has ``from_predictions`` and ``from_estimator``, or ``from_monitor``; and
``plot(*, ax=None)``, ``to_frame()`` and ``to_dict()``. They need matplotlib:
``pip install "caldist[report]"``, or in a checkout ``pip install ".[report]"``.
"""

from caldist.plots.binned import BinnedCurve, BinnedDisplay
from caldist.plots.class_reliability import ClassReliabilityDisplay, TopLabelDisplay
from caldist.plots.classwise import ClassShares, ClasswiseDisplay
from caldist.plots.decision import DecisionCurve, DecisionCurveDisplay
from caldist.plots.distance import DistanceDisplay, DistanceInterval
from caldist.plots.map import MapCurve, MapDisplay
from caldist.plots.monitor import MonitorCurve, MonitorDisplay
from caldist.plots.reliability import ReliabilityCurve, ReliabilityDisplay
from caldist.plots.witness import WitnessCurve, WitnessDisplay

__all__ = [
    "BinnedCurve",
    "BinnedDisplay",
    "ClassReliabilityDisplay",
    "ClassShares",
    "ClasswiseDisplay",
    "DecisionCurve",
    "DecisionCurveDisplay",
    "DistanceDisplay",
    "DistanceInterval",
    "MapCurve",
    "MapDisplay",
    "MonitorCurve",
    "MonitorDisplay",
    "ReliabilityCurve",
    "ReliabilityDisplay",
    "TopLabelDisplay",
    "WitnessCurve",
    "WitnessDisplay",
]
