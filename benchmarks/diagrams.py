"""A reliability diagram without a band, beside scikit-learn's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

from benchmarks.families import FAMILIES
from benchmarks.tables import Table, number, size_name, verdict
from benchmarks.timing import Effort, best_of, processor_time

FAMILY = "beta=3"
_JUDGED = 10**6


def _drawn(draw: Callable[[Any], object], effort: Effort) -> float:
    """Return the milliseconds that drawing on empty axes takes."""
    from matplotlib.figure import Figure

    return 1000 * processor_time(lambda: draw(Figure().subplots()), effort)


def diagram_table(sizes: Sequence[int], effort: Effort) -> Table:
    """Lay out the times of both by number of rows."""
    from sklearn.calibration import CalibrationDisplay

    from caldist.plots import ReliabilityDisplay

    rows = []
    for n in sizes:
        sample = FAMILIES[FAMILY].make(n)
        given = (sample.y_true, sample.y_prob)

        def ours(ax: Any, given: Any = given) -> object:
            return ReliabilityDisplay.from_predictions(*given, confidence_level=None, ax=ax)

        def theirs(ax: Any, given: Any = given) -> object:
            return CalibrationDisplay.from_predictions(*given, n_bins=15, ax=ax)

        mine, others = _drawn(ours, effort), _drawn(theirs, effort)
        judged = verdict(mine <= others) if n >= _JUDGED else ""
        rows.append([size_name(n), number(mine), number(others), judged])
    note = (
        f"Processor time of all threads in ms, on axes that are there, {best_of(effort)}; family "
        f"{FAMILY}. ReliabilityDisplay draws a smooth curve over the predictions' distribution, "
        "CalibrationDisplay 15 points and a line. With few rows most is matplotlib's."
    )
    header = ["rows", "caldist", "scikit-learn", "verdict"]
    return Table("A diagram without band", header, rows, note)


CAN_RUN = all(find_spec(module) is not None for module in ("matplotlib", "sklearn"))
