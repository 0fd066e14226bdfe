"""Reports on one or more models: text, JSON and one HTML page."""

from caldist.reporting.build import report
from caldist.reporting.figures import Figure
from caldist.reporting.model import (
    BoundsReport,
    ClassModelReport,
    ClassReport,
    ClassTestReport,
    ClinicalReport,
    DataReport,
    EstimateReport,
    GroupReport,
    LossReport,
    MeasureReport,
    ModelReport,
    MonitorGroupReport,
    MonitorReport,
    MonitorStepReport,
    PairReport,
    RecalibrationReport,
    Report,
    SourceReport,
)
from caldist.reporting.monitoring import monitor_report

__all__ = [
    "BoundsReport",
    "ClassModelReport",
    "ClassReport",
    "ClassTestReport",
    "ClinicalReport",
    "DataReport",
    "EstimateReport",
    "Figure",
    "GroupReport",
    "LossReport",
    "MeasureReport",
    "ModelReport",
    "MonitorGroupReport",
    "MonitorReport",
    "MonitorStepReport",
    "PairReport",
    "RecalibrationReport",
    "Report",
    "SourceReport",
    "monitor_report",
    "report",
]
