"""What a report says of a monitor: a section of a report, or a page of its own."""

from __future__ import annotations

from caldist._util.numbers import down, percent, probability
from caldist.monitoring import Monitor, Step
from caldist.plots.monitor import MonitorDisplay, monitor_curves
from caldist.reporting.figures import Figure
from caldist.reporting.model import MonitorGroupReport, MonitorReport, MonitorStepReport

_NAMED = 5  # sub-groups that are named in a sentence
_KINDS = {
    "level": "predictions are too high, or too low, everywhere",
    "slope": "predictions are too extreme, or too cautious",
    "wave": "predictions are too high in some ranges and too low in others",
    "local": "predictions are off in some range",
}


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
    >>> step = monitor.update([0, 1, 1, 0], [0.2, 0.7, 0.9, 0.4], label="2026-11-15")
    >>> monitor_report(monitor).alarm
    False
    """
    curves = tuple(monitor_curves(monitor))  # which checks it
    steps = monitor.steps
    last = steps[-1]
    caption = (
        "The e-value with the threshold of its alarm; the distance to calibration of all rows so "
        "far, with its confidence sequence; and by how much labels are more frequent than "
        "predicted since the onset, over where predictions are."
    )
    words = _verdict(monitor)
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
        onset=None if last.onset is None else str(last.onset),
        kind=next(iter(last.kind), None),
        tolerance=monitor.tolerance,
        false_alarm_rate=monitor.false_alarm_rate,
        run_length=monitor.run_length,
        dependence=monitor.dependence,
        n_rows=monitor.joint.n_rows or 0,
        steps=tuple(_step(step) for step in steps),
        groups=tuple(_group(str(group), step) for group, step in last.by.items()),
        figures=(Figure(caption, f"{words} {caption}", MonitorDisplay, curves, height),),
    )


def _step(step: Step) -> MonitorStepReport:
    return MonitorStepReport(
        label=str(step.label),
        n_rows=step.n_rows,
        alarm=step.alarm,
        pvalue=step.pvalue,
        log_e_value=step.log_e_value,
        value=step.value,
        lower=step.lower,
        upper=step.upper,
    )


def _group(name: str, step: Step) -> MonitorGroupReport:
    return MonitorGroupReport(
        group=name,
        alarm=step.alarm,
        pvalue=step.pvalue,
        value=step.value,
        lower=step.lower,
        onset=None if step.onset is None else str(step.onset),
        kind=next(iter(step.kind), None),
    )


def _verdict(monitor: Monitor) -> str:
    """Say whether there is an alarm, of what, since when and where, and how sure that is."""
    steps = monitor.steps
    last = steps[-1]
    sure = (
        f"at most {percent(monitor.false_alarm_rate)} ever"
        if monitor.run_length is None
        else f"one in {monitor.run_length:g} batches or more, on average"
    )
    if not last.alarm:
        known = f" The distance is at least {down(last.lower)}." if last.lower > 1e-9 else ""
        within = (
            "calibrated predictions"
            if monitor.tolerance is None
            else f"a distance to calibration within {monitor.tolerance:g}"
        )
        number = len(steps)
        return (
            f"No alarm after {number:,} batch{'' if number == 1 else 'es'}: the data are "
            f"compatible with {within} (p = {probability(last.pvalue)}).{known}"
        )
    first = next(step for step in steps if step.alarm)
    what = (
        "The predictions are not calibrated"
        if monitor.tolerance is None
        else f"The distance to calibration exceeds {monitor.tolerance:g}"
    )
    since = ""
    if last.onset is not None:
        kind = _KINDS[next(iter(last.kind))]
        since = f" Probably since {last.onset}; it looks as if {kind}."
    found = [str(group) for group, step in last.by.items() if step.alarm]
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    where = f" At fault: {', '.join(found[:_NAMED])}{more}." if found else ""
    return (
        f"ALARM on {first.label}. {what} (p = {probability(last.pvalue)}); false alarms are {sure}."
        f"{since}{where}"
    )
