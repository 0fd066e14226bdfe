"""Clinical measures, as a part of a report."""

from __future__ import annotations

from caldist.clinical.calibration_summary import summary_of
from caldist.data.rows import Rows
from caldist.errors import InvalidInput
from caldist.inference.resampling import Resampler
from caldist.reporting.model import ClinicalReport, EstimateReport

_KEPT = ("value", "lower", "upper", "note")


def clinical_report(rows: Rows, level: float, resampler: Resampler) -> ClinicalReport:
    """Return what :func:`caldist.clinical.calibration_summary` says of rows, or why not."""
    try:
        found = summary_of(rows, "loess", level, resampler)
    except InvalidInput as error:  # one label, a constant prediction, certain ones that failed
        return ClinicalReport((), "", None, str(error))
    return ClinicalReport(
        estimates=tuple(
            EstimateReport(name, *(part.to_dict()[key] for key in _KEPT))
            for name, part in found.estimates.items()
        ),
        test=str(found.test),
        test_pvalue=found.test.pvalue,
        reason="",
    )
