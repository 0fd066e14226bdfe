"""Reports: everything about the calibration of one or more models, for people and for machines."""

from caldist.reporting.build import report
from caldist.reporting.figures import Figure
from caldist.reporting.model import (
    BoundsReport,
    ClassModelReport,
    ClassReport,
    ClassTestReport,
    DataReport,
    GroupReport,
    LossReport,
    MeasureReport,
    ModelReport,
    MonitorGroupReport,
    MonitorReport,
    MonitorStepReport,
    PairReport,
    RepairReport,
    Report,
)
from caldist.reporting.monitoring import monitor_report

__all__ = [
    "BoundsReport",
    "ClassModelReport",
    "ClassReport",
    "ClassTestReport",
    "DataReport",
    "Figure",
    "GroupReport",
    "LossReport",
    "MeasureReport",
    "ModelReport",
    "MonitorGroupReport",
    "MonitorReport",
    "MonitorStepReport",
    "PairReport",
    "RepairReport",
    "Report",
    "monitor_report",
    "report",
]
