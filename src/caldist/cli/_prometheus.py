"""A monitor as Prometheus's text format, for the textfile collector of its node exporter."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from caldist._util.escaping import for_terminal

if TYPE_CHECKING:
    from caldist.monitoring import Monitor, Step
    from caldist.monitoring.batch_names import BatchName

_ESCAPED = {"\\": r"\\", '"': r"\"", "\n": r"\n"}


def exposition(monitor: Monitor, name: str) -> str:
    """Return where the monitor stands after its last batch; ``name`` is a label of every value.

    Values of sub-groups have names of their own, so that a sum over labels counts nothing twice.
    """
    if not monitor.steps:
        return ""
    last = monitor.steps[-1]
    own = {"monitor": name}
    lines: list[str] = []
    for metric, meaning, value in (
        *_of_step(last, "of the last batch"),
        ("log_threshold", "What log_e_value must reach for an alarm", monitor.log_threshold),
        ("tolerance", "The distance to calibration that is acceptable", monitor.tolerance),
        ("batches", "Batches since the monitor was made or reset", len(monitor.steps)),
        ("last_batch_timestamp_seconds", "The date of the last batch", _seconds(last.batch)),
        ("onset_timestamp_seconds", "Estimated start of the miscalibration", _onset(monitor)),
    ):
        lines += _metric(f"caldist_monitor_{metric}", meaning, [(own, value)])
    parts = {str(group): list(_of_step(step, "")) for group, step in last.by.items()}
    for at, (metric, meaning, _) in enumerate(_of_step(last, "of the last batch")):
        values = [(own | {"group": group}, part[at][2]) for group, part in parts.items()]
        lines += _metric(f"caldist_monitor_group_{metric}", f"{meaning}, of a sub-group", values)
    return "\n".join(lines) + "\n"


def _of_step(step: Step, batch: str) -> Iterator[tuple[str, str, float | None]]:
    yield "alarm", "1 if the alarm is on, 0 otherwise", int(step.alarm)
    yield "pvalue", "The anytime-valid p-value", step.pvalue
    yield "log_e_value", "The logarithm of the e-value that the alarm follows", step.log_e_value
    yield "distance", "The lower distance to calibration of all rows", step.value
    yield "distance_lower", "The lower end of its confidence sequence", step.lower
    yield "distance_upper", "The upper end, if nothing changed since the start", step.upper
    yield "rows", f"Rows {batch}".rstrip(), step.n_rows


def _metric(
    name: str, meaning: str, values: Sequence[tuple[Mapping[str, str], float | None]]
) -> Iterator[str]:
    there = [(labels, value) for labels, value in values if value is not None]
    if not there:
        return
    yield f"# HELP {name} {meaning}."
    yield f"# TYPE {name} gauge"
    for labels, value in there:
        listed = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        yield f"{name}{{{listed}}} {_number(value)}"


def _escaped(text: str) -> str:
    return "".join(_ESCAPED.get(letter, letter) for letter in for_terminal(text))


def _number(value: float) -> str:
    if isinstance(value, int) or math.isfinite(value):
        return repr(value)
    return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"


def _onset(monitor: Monitor) -> int | None:
    from caldist.monitoring.steps import begun  # a monitor is there, so it costs nothing

    onset = begun(monitor.steps) if monitor.steps[-1].alarm else None
    return None if onset is None else _seconds(onset)


def _seconds(batch: BatchName) -> int | None:
    """Return the time of a date; other names of batches have none."""
    if not isinstance(batch, dt.date):
        return None
    start = dt.datetime(batch.year, batch.month, batch.day, tzinfo=dt.UTC)
    return int(start.timestamp())
