"""Reports: everything about the calibration of one or more models, for people and for machines."""

from caldist.reporting.build import report
from caldist.reporting.figures import Figure
from caldist.reporting.model import (
    DataReport,
    GroupReport,
    MeasureReport,
    ModelReport,
    PairReport,
    Report,
)

__all__ = [
    "DataReport",
    "Figure",
    "GroupReport",
    "MeasureReport",
    "ModelReport",
    "PairReport",
    "Report",
    "report",
]
