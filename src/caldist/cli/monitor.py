"""``caldist monitor``: new days to an alarm that is right at every look."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from caldist.cli import _options
from caldist.cli._data import Data, are_summaries
from caldist.cli._output import PValue, in_json, show
from caldist.cli._progress import working
from caldist.cli._source import on_disk
from caldist.cli._streams import begin_line, keep_output, say
from caldist.errors import InvalidInput

if TYPE_CHECKING:
    from caldist.cli._dates import Passed
    from caldist.cli._days import Days
    from caldist.monitoring import Monitor, Step

_ALARM = 1
_MATURITY = re.compile(r"(\d{1,6})([dw])", re.ASCII)
_DAYS = {"d": 1, "w": 7}
_OPTIONS = {
    "tolerance": "--tolerance",
    "false_alarm_rate": "--false-alarm-rate",
    "run_length": "--run-length",
    "dependence": "--dependent-dates",
}


@click.command(cls=_options.Command)
@_options.data("by")
@click.option(
    "--date", metavar="COL", help="The column of dates; of summaries, the folders COL=date."
)
@click.option(
    "--date-format",
    metavar="FORMAT",
    help="The format of dates that are not ISO dates, such as %d/%m/%Y, in strptime codes.",
)
@click.option(
    "--state", required=True, metavar="FILE", help="What the monitor remembers, .npz; made if new."
)
@click.option(
    "--tolerance",
    type=float,
    metavar="DISTANCE",
    help="Alarm if the distance to calibration exceeds this, instead of 0.",
)
@click.option(
    "--false-alarm-rate",
    type=float,
    metavar="RATE",
    help="The probability of ever a false alarm.  [default: 0.05]",
)
@click.option(
    "--run-length",
    type=float,
    metavar="DATES",
    help="Instead of that, the mean number of dates until a false alarm.",
)
@click.option(
    "--maturity",
    metavar="AGE",
    help="Take a date when it is this old, such as 30d or 4w, by the clock in UTC: its labels are "
    "there by then. Without it every date is taken, even one that is not over.",
)
@click.option(
    "--dependent-dates",
    is_flag=True,
    help="The rows of a date depend on each other: treat them as one cluster.",
)
@click.option(
    "--invalid",
    type=click.Choice(["raise", "count"]),
    default="raise",
    show_default=True,
    help="What to do with rows of a table without a valid label or prediction.",
)
@click.option(
    "--format",
    "style",
    type=click.Choice(["table", "json", "csv", "prometheus"]),
    default="table",
    show_default=True,
    help="json is one object a line; prometheus is where the monitor stands, new dates or not.",
)
@_options.out(help="Also write a page about the monitor, .html.")
@click.option("--fail-on-alarm", is_flag=True, help="End with exit code 1 while there is an alarm.")
@click.pass_context
def monitor(
    context: click.Context,
    *,
    data: Data,
    date: str | None,
    date_format: str | None,
    state: str,
    tolerance: float | None,
    false_alarm_rate: float | None,
    run_length: float | None,
    maturity: str | None,
    dependent_dates: bool,
    invalid: Literal["raise", "count"],
    style: str,
    out: str | None,
    fail_on_alarm: bool,
) -> None:
    """Watch calibration date by date, with an alarm that is right at every look.

    Takes the dates of FILE that come after the last one in --state, prints a line for each, and
    keeps the state: run it as often as you like, each date counts once. The probability of ever a
    false alarm is at most --false-alarm-rate, whenever you look. The state is saved last: if a
    run is cut short, the next one prints the same lines again. A second run at the same
    time is refused.

    FILE is CSV, Parquet or JSON lines, a glob in quotes, or summaries (.npz) that are named by
    their dates or lie in folders NAME=date. Settings and sub-groups are those of the first run.
    """
    from caldist._util.locks import locked
    from caldist._util.optional import require

    _options.check_out(state, [".npz"], "--state")
    if out is not None:
        _options.check_out(out, [".html"])
        require("jinja2", extra="report")
        require("matplotlib", extra="report")
    given = {
        "tolerance": tolerance,
        "false_alarm_rate": false_alarm_rate,
        "run_length": run_length,
        "dependence": "batches" if dependent_dates else None,
    }
    until = _until(maturity)
    path = Path(state)
    notes: list[str] = []
    with locked(path), on_disk(data.files) as paths:
        watched = _loaded(path, given, data)
        with working("reading"):
            days = _days(data, paths, date, date_format, path, watched, until, invalid)
        if watched is None:
            watched = _made(given, days)
        with working("monitoring"):
            steps = list(_updated(watched, days, notes))
        older = days.passed.older_note()
        if not steps:
            notes.append(_nothing(watched, until))
        if older is not None and (style == "table" or not steps):
            notes.append(older)
        notes += days.passed.warnings()
        if out is not None and watched.steps:
            from caldist.reporting import monitor_report

            monitor_report(watched, name=path.stem).to_html(out)
        _show(watched, steps, style, path.stem, days.passed, notes)
        if steps:  # after they are printed: a line may come twice, and none is lost
            keep_output()
            watched._save(path)  # noqa: SLF001 -- the lock is held
    alarmed = bool(watched.steps) and watched.steps[-1].alarm
    if alarmed:
        say(_alarm(watched), err=True)
    context.exit(_ALARM if alarmed and fail_on_alarm else 0)


def _until(maturity: str | None) -> dt.date | None:
    """Return the last date that is old enough; None if age does not matter."""
    if maturity is None:
        return None
    found = _MATURITY.fullmatch(maturity.strip())
    if found is None:
        reason = "it must be a number of days or weeks, as 30d or 4w"
        raise InvalidInput(argument="--maturity", value=maturity, reason=reason)
    try:
        return _today() - dt.timedelta(days=int(found[1]) * _DAYS[found[2]])
    except OverflowError:
        reason = "that is before the first date there is"
        raise InvalidInput(argument="--maturity", value=maturity, reason=reason) from None


def _today() -> dt.date:
    return dt.datetime.now(dt.UTC).date()


def _loaded(path: Path, given: dict[str, Any], data: Data) -> Monitor | None:
    """Return the monitor of a state, whose settings must be those that are given."""
    from caldist.monitoring import Monitor

    if not path.exists():
        return None
    found = Monitor.load(path)
    for name, value in given.items():
        kept = getattr(found, name)
        if value is not None and value != kept:
            raise InvalidInput(
                argument=_OPTIONS[name],
                value=value,
                reason=f"the monitor in {str(path)!r} was made with {kept}, and its guarantee is "
                "for that choice",
                remedy="Leave the option out, or begin a new state.",
            )
    if bool(found.by) != (data.by is not None):
        if found.by:
            reason = f"is missing, and the monitor in {str(path)!r} has sub-groups"
            raise InvalidInput(argument="--by", reason=reason, remedy="Name their column.")
        raise InvalidInput(
            argument="--by",
            value=data.by,
            reason=f"the monitor in {str(path)!r} was made without sub-groups",
            remedy="Leave it out, or begin a new state.",
        )
    return found


def _made(given: dict[str, Any], days: Days) -> Monitor:
    from caldist.monitoring import Monitor

    chosen = {name: value for name, value in given.items() if value is not None}
    return Monitor(**chosen, by=days.groups or None, bits=days.bits)


def _days(
    data: Data,
    paths: list[str],
    date: str | None,
    date_format: str | None,
    state: Path,
    watched: Monitor | None,
    until: dt.date | None,
    invalid: Literal["raise", "count"],
) -> Days:
    from caldist.cli._dates import check_format
    from caldist.cli._days import SummaryDays, TableDays, Wanted

    written, wanted = check_format(date_format), Wanted.of(watched, until)
    if are_summaries(paths):
        return SummaryDays(data, paths, date, written, wanted, state)
    return TableDays(data, paths, date, written, wanted, invalid)


def _updated(watched: Monitor, days: Days, notes: list[str]) -> Iterator[Step]:
    """Take the days, and say what was left out."""
    left_out: Counter[str] = Counter()
    undeclared: Counter[str] = Counter()
    for day, joints in days.read():
        for joint in joints.values():
            left_out.update(joint.invalid)
        if not watched.by:
            yield watched.update(joints[None], batch=day)
            continue
        known = {group: joint for group, joint in joints.items() if group in watched.by}
        undeclared.update(
            {str(group): joints[group].n_rows or 0 for group in joints if group not in known}
        )
        yield watched.update(known, batch=day)
    if left_out:
        reasons = ", ".join(f"{count:,} with a {why}" for why, count in left_out.items())
        notes.append(f"{left_out.total():,} rows were left out: {reasons}.")
    notes += [
        f"{rows:,} rows of the sub-group {group!r} are left out, which was not there in the first "
        "run: watch it with a state of its own, or begin a new state."
        for group, rows in undeclared.items()
    ]


def _nothing(watched: Monitor, until: dt.date | None) -> str:
    last = "" if watched.last_batch is None else f" after {watched.last_batch}"
    old = "" if until is None else f" up to {until}"
    return f"no new dates{last}{old}."


def _show(
    watched: Monitor, steps: list[Step], style: str, name: str, passed: Passed, notes: list[str]
) -> None:
    if steps:
        begin_line()
    if style == "prometheus":
        from caldist.cli._prometheus import exposition

        say(exposition(watched, name), nl=False)
    elif style == "json":
        for step in steps:
            line = step.to_dict() | passed.to_dict()
            say(json.dumps(in_json(line), allow_nan=False))
    elif steps:
        lines = [_line(watched, step, every=style == "csv") for step in steps]
        show(lines, style, head={}, notes=notes)
        return
    if notes:
        say("\n".join(notes), err=True)


def _line(watched: Monitor, step: Step, *, every: bool) -> dict[str, object]:
    since = every or step.alarm  # without an alarm it is nothing to read
    line: dict[str, object] = {
        "date": str(step.batch),
        "rows": step.n_rows,
        "alarm": "yes" if step.alarm else "no",
        "pvalue": PValue(step.pvalue, 0.0),
        "log_e_value": step.log_e_value,
        "value": step.value,
        "lower": step.lower,
        "upper": step.upper,
        "onset": str(step.onset) if since and step.onset is not None else "",
        "kind": next(iter(step.kind), "") if since else "",
    }
    if watched.by:
        line["groups"] = ", ".join(str(group) for group, part in step.by.items() if part.alarm)
    return line


def _alarm(watched: Monitor) -> str:
    last = watched.steps[-1]
    first = next(step for step in watched.steps if step.alarm)
    what = (
        "the predictions are not calibrated"
        if watched.tolerance is None
        else f"the distance to calibration exceeds {watched.tolerance:g}"
    )
    found = [str(group) for group, part in last.by.items() if part.alarm]
    where = f", in {', '.join(found)}" if found else ""
    text = f"alarm on {first.batch}: {what}{where}; probably since {first.onset}"
    return " ".join(text.split())
