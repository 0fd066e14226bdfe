"""What recalibration would do, as a part of a report."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

from caldist.data.rows import Rows
from caldist.inference.resampling import Resampler
from caldist.inference.sample import Units, units_of
from caldist.measures.registry import find
from caldist.recalibration.recalibration import Recalibration, recalibrate
from caldist.reporting.model import BoundsReport, LossReport, RecalibrationReport

_MANY = 100_000  # different predictions from which a summary is recalibrated
_BITS = 16  # of its grid
_DRAWS = 10  # replicates of a statement, in units of 1/(1 - level): more hardly change it


def recalibration_of(rows: Rows, level: float, resampler: Resampler, seed: int) -> Recalibration:
    """Recalibrate the predictions of one model."""
    draws = min(resampler.n_resamples, round(_DRAWS / (1 - level)) - 1)
    with warnings.catch_warnings():
        # The words say so.
        warnings.filterwarnings("ignore", "the map is constant|all rows have label", UserWarning)
        return recalibrate(
            _few_cells(rows),  # type: ignore[arg-type]  # checked and sorted already
            confidence_level=level,
            n_resamples=draws,
            rng=seed,
            progress=resampler.progress,
        )


def _few_cells(rows: Rows) -> Rows:
    """Return rows of many different predictions as their summary: replicates cost less of cells.

    Of a million rows, an eighth of the processor time. The largest weight stays known.
    """
    joint = rows.joint
    if rows.cluster is not None or joint.radius > 0 or joint.prediction.size < _MANY:
        return rows
    found = Rows.of(joint.coarsen(_BITS))
    units = units_of(found)
    if units.heaviest is not None:
        heaviest = min(units.heaviest, units_of(rows).largest_share)
        found.cache[Units] = replace(units, heaviest=heaviest)
    return found


def recalibration_report(found: Recalibration) -> RecalibrationReport:
    """Return what a report says of a recalibration."""
    table = found.map
    assert table is not None  # noqa: S101 -- only maps made elsewhere can be missing
    words = " ".join(str(found).split("\n"))
    if table.y[0] == table.y[-1]:
        words += " The map is constant: larger predictions do not have more labels 1 on these rows."
    return RecalibrationReport(
        words=words,
        family=found.family,
        slack=None if found.slack is None else _finite(found.slack),
        reason=found.reason,
        n_resamples=found.n_resamples,
        auc_before=found.auc_before,
        auc_after=found.auc_after,
        bounds=tuple(
            BoundsReport(
                name,
                "dCE" if name == "distance" else find(name).symbol,
                found.before[name].lower,
                found.before[name].upper,
                after.lower,
                after.upper,
            )
            for name, after in found.after.items()
        ),
        losses=tuple(
            LossReport(
                name,
                *map(_finite, (loss.before, loss.after, loss.change, loss.lower, loss.upper)),
            )
            for name, loss in found.loss.items()
        ),
        x=tuple(table.x.tolist()),
        y=tuple(table.y.tolist()),
    )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
