"""Reports: everything about the calibration of one or more models, for people and for machines."""

from caldist.reporting.build import report
from caldist.reporting.figures import Figure
from caldist.reporting.model import (
    DataReport,
    GroupReport,
    MeasureReport,
    ModelReport,
    MonitorGroupReport,
    MonitorReport,
    MonitorStepReport,
    PairReport,
    Report,
)
from caldist.reporting.monitoring import monitor_report

__all__ = [
    "DataReport",
    "Figure",
    "GroupReport",
    "MeasureReport",
    "ModelReport",
    "MonitorGroupReport",
    "MonitorReport",
    "MonitorStepReport",
    "PairReport",
    "Report",
    "monitor_report",
    "report",
]
