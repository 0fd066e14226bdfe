"""Reports: everything about the calibration of one or more models, for people and for machines."""

from caldist.reporting.build import report
from caldist.reporting.figures import Figure
from caldist.reporting.model import (
    BoundsReport,
    DataReport,
    GroupReport,
    LossReport,
    MeasureReport,
    ModelReport,
    PairReport,
    RepairReport,
    Report,
)

__all__ = [
    "BoundsReport",
    "DataReport",
    "Figure",
    "GroupReport",
    "LossReport",
    "MeasureReport",
    "ModelReport",
    "PairReport",
    "RepairReport",
    "Report",
    "report",
]
