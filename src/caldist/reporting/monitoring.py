"""What a report says of a monitor: a section of a report, or a page of its own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from caldist._util.numbers import chance, down, number, percent, short
from caldist._util.types import Vector
from caldist.monitoring import Monitor, Step
from caldist.monitoring.steps import begun
from caldist.plots.monitor import MonitorCurve, MonitorDisplay, monitor_curves
from caldist.reporting.figures import Figure
from caldist.reporting.model import MonitorGroupReport, MonitorReport, MonitorStepReport

_NAMED = 5  # sub-groups that are named in a sentence
_ONE_SIDED = 0.8  # of the errors, from which on predictions are too high, or too low


def monitor_report(monitor: Monitor, *, name: str = "monitor") -> MonitorReport:
    """Report on a monitor: whether there is an alarm, since when, where, and a figure.

    Parameters
    ----------
    monitor : Monitor
        With at least one batch.
    name : str
        What is watched.

    Returns
    -------
    MonitorReport
        ``to_html(path)`` writes it as a page of its own; ``report(…, monitor=monitor)`` has it as a
        section.

    Examples
    --------
    >>> import caldist
    >>> from caldist.reporting import monitor_report
    >>> monitor = caldist.Monitor(tolerance=0.02)
    >>> step = monitor.update([0, 1, 1, 0], [0.2, 0.7, 0.9, 0.4], batch="2026-11-15")
    >>> monitor_report(monitor).alarm
    False
    """
    curves = tuple(monitor_curves(monitor))  # which checks it
    steps = monitor.steps
    last, onset = steps[-1], begun(steps)
    caption = (
        "The e-value with the threshold of its alarm; the distance to calibration of all rows so "
        "far, with its confidence sequence; and by how much labels are more frequent than "
        "predicted, at each prediction, since the batch with the strongest evidence now."
    )
    groups = _groups(monitor)
    words = _verdict(monitor, groups, _direction(curves[0]))
    height = 6.6 + 0.34 * (len(curves) - 1)
    return MonitorReport(
        name=name,
        verdict=words,
        alarm=last.alarm,
        pvalue=last.pvalue,
        log_e_value=last.log_e_value,
        log_threshold=monitor.log_threshold,
        value=last.value,
        lower=last.lower,
        upper=last.upper,
        onset=None if onset is None else str(onset),
        kind=next(iter(last.kind), None),
        tolerance=monitor.tolerance,
        false_alarm_rate=monitor.false_alarm_rate,
        run_length=monitor.run_length,
        dependence=monitor.dependence,
        n_rows=monitor.joint.n_rows or 0,
        steps=tuple(_step(step) for step in steps),
        groups=groups,
        figures=(Figure(caption, f"{words} {caption}", MonitorDisplay, curves, height),),
    )


def _step(step: Step) -> MonitorStepReport:
    return MonitorStepReport(
        batch=str(step.batch),
        n_rows=step.n_rows,
        alarm=step.alarm,
        pvalue=step.pvalue,
        log_e_value=step.log_e_value,
        value=step.value,
        lower=step.lower,
        upper=step.upper,
    )


def _groups(monitor: Monitor) -> tuple[MonitorGroupReport, ...]:
    """Return the sub-groups after the last batch; which way they err if they are at fault."""
    last = monitor.steps[-1]
    found = [group for group, step in last.by.items() if step.alarm]
    curves = monitor_curves(monitor, groups=found)[1:]
    direction = {group: _direction(curve) for group, curve in zip(found, curves, strict=True)}
    return tuple(
        _group(str(group), [step.by[group] for step in monitor.steps], direction.get(group))
        for group in last.by
    )


def _group(name: str, steps: Sequence[Step], direction: str | None) -> MonitorGroupReport:
    last, onset = steps[-1], begun(steps)
    return MonitorGroupReport(
        group=name,
        alarm=last.alarm,
        pvalue=last.pvalue,
        value=last.value,
        lower=last.lower,
        onset=None if onset is None else str(onset),
        kind=next(iter(last.kind), None),
        direction=direction,
    )


def _direction(curve: MonitorCurve) -> str | None:
    """Say which way predictions err, by the errors that the figure shows."""
    if curve.prediction.size == 0:
        return None
    share = curve.share / curve.share.sum()
    is_high = curve.prediction > share @ curve.prediction
    if side := _side(share * curve.error):
        mean = abs(float(share @ curve.error))
        return f"too {'low' if side > 0 else 'high'} by {short(mean)} on average"
    ends = tuple(_side((share * curve.error)[half]) for half in (~is_high, is_high))
    if ends == (1, -1):
        return "too extreme: too low where low, too high where high"
    if ends == (-1, 1):
        return "too cautious: too high where low, too low where high"
    return "too high in some ranges and too low in others"


def _side(errors: Vector) -> int:
    """Return 1 or -1 if nearly all errors are on one side, and else 0."""
    net, gross = float(errors.sum()), float(np.abs(errors).sum())
    return int(np.sign(net)) if abs(net) >= _ONE_SIDED * gross > 0 else 0


def _verdict(monitor: Monitor, groups: Sequence[MonitorGroupReport], direction: str | None) -> str:
    """Say whether there is an alarm, of what, since when and where, and how sure that is."""
    steps = monitor.steps
    last = steps[-1]
    sure = (
        f"at most {percent(monitor.false_alarm_rate)} ever"
        if monitor.run_length is None
        else f"one in {monitor.run_length:g} batches or more, on average"
    )
    certain = chance(last.pvalue)
    if not last.alarm:
        known = f" The distance is at least {down(last.lower)}." if last.lower > 1e-9 else ""
        within = (
            "calibrated predictions"
            if monitor.tolerance is None
            else f"a distance to calibration within {monitor.tolerance:g}"
        )
        number_of = len(steps)
        return (
            f"No alarm after {number_of:,} batch{'' if number_of == 1 else 'es'}: the data are "
            f"compatible with {within} ({certain}).{known}"
        )
    first, onset = next(step for step in steps if step.alarm), begun(steps)
    since = "" if onset is None else f", probably since {onset}"
    found = [group for group in groups if group.alarm]
    what = (
        "The predictions are not calibrated"
        if monitor.tolerance is None
        else f"The distance to calibration exceeds {monitor.tolerance:g} from some batch on"
    )
    where = ", in all rows or in a sub-group" if groups else ""
    how = "" if direction is None else f" Predictions are now {direction}."
    if found:
        named = "; ".join(
            f"{group.group} (distance {number(group.value)}, at least {down(group.lower)}; "
            f"predictions now {group.direction})"
            for group in found[:_NAMED]
        )
        more = f"; and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
        how = f" At fault: {named}{more}."
    return (
        f"ALARM on {first.batch}{since}. {what}{where} ({certain}); false alarms are {sure}.{how}"
    )
