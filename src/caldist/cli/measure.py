"""``caldist measure``: values of measures, of columns or of saved summaries, and gates on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from caldist._util.numbers import down, up
from caldist.cli import _clinical, _options
from caldist.cli._data import Data, Models, needs_rows
from caldist.cli._output import COUNTS, NOTHING, format_option, noting, show
from caldist.cli._progress import working
from caldist.cli._streams import say
from caldist.inference.sample import units_of

if TYPE_CHECKING:
    from caldist.inference import Gate, Interval
    from caldist.measures.base import Measure
    from caldist.measures.evaluation import Evaluation

_ERROR = 0.05  # of each one-sided limit
_FAILED, _UNDECIDED = 1, 3


@click.command()
@_options.data("positive", "clusters", "by", "classes", "normalize")
@click.option(
    "--measures",
    metavar="NAMES",
    help="Names with commas between, all, or medical: calibration intercept and slope, observed "
    "over expected, ICI, E50, E90, Emax. By default a few; the output names the others.",
)
@click.option(
    "--each-class", is_flag=True, help="Of several classes: a line for each, the worst first."
)
@format_option
@click.option(
    "--fail-above",
    type=float,
    metavar="LIMIT",
    help="End with exit code 1 if the first measure of the population exceeds this in any line, "
    "with 95% confidence.",
)
@click.option(
    "--require-below",
    type=float,
    metavar="LIMIT",
    help="End with exit code 0 only if the first measure of the population is below this in all "
    "lines, with 95% confidence; 1 if it exceeds it in any, 3 if there are too few rows to tell.",
)
@click.pass_context
def measure(
    context: click.Context,
    *,
    data: Data,
    measures: str | None,
    each_class: bool,
    style: str,
    fail_above: float | None,
    require_below: float | None,
) -> None:
    """Measure calibration of the predictions in a file.

    FILE is CSV, Parquet or JSON lines, a glob in quotes, - for standard input, or a summary (.npz)
    that `caldist summarize` wrote. Bad rows are an error; those without a value can be left out.

    With --fail-above or --require-below lower_limit and upper_limit are shown as well: one-sided
    limits of the population's value, each wrong with probability 5%. They need no random draws.

    Several classes, by a pattern or --classes, have the measures classwise_distance, smooth_ce and
    kernel_ce; noise is what classwise_distance would be on average if they were calibrated.
    """
    from caldist.data.doubts import doubts_said
    from caldist.measures.evaluation import evaluate
    from caldist.measures.registry import shown_in

    given = {"--fail-above": fail_above, "--require-below": require_below}
    medical = measures is not None and measures.strip() == _clinical.NAME
    if medical:
        _clinical.refuse_limits(given)
    elif not data.may_have_classes:  # refused before a file is read
        _limits(_chosen(measures)[0], given)
    models = data.read(whole=needs_rows(measures))
    if not isinstance(models, Models):
        from caldist.cli import _class_measures

        asked = _class_measures.Asked(measures, _limits_of(given), each_class)
        found_lines, ends_of_lines = _class_measures.measured(models, asked, style)
        context.exit(_judged(_class_measures.GATED, found_lines, ends_of_lines, asked.limits))
    if each_class:
        message = (
            "--each-class was given, and there are no classes: name their columns by a pattern, as "
            "--score 'p_*', or with --classes."
        )
        raise ValueError(message)
    if medical:
        shown, notes = _clinical.medical_lines(models)
        show(shown, style, head=models.head, notes=[*models.notes, *notes])
        return
    chosen = _chosen(measures)
    limits = _limits(chosen[0], given)
    notes = list(models.notes)
    if measures is None:
        others = [str(other) for other in shown_in("evaluate") if other not in chosen]
        notes.append(f"Left out: {', '.join(others)}. All of them: --measures all")
    with working("measuring"):
        lines = list(models.lines())
        with doubts_said():
            found = [
                (line, evaluate(rows, measures=chosen))  # type: ignore[arg-type]  # checked
                for line, rows in lines
            ]
        gates = []
        if limits:
            with noting(notes):
                gates = _gates(models, chosen[0])
            notes.append(
                f"lower_limit and upper_limit are of {chosen[0]} of the population; each is on the "
                "wrong side of it with probability 5%."
            )
    shown = []
    for at, (line, values) in enumerate(found):
        ends = [gates[at].lower, gates[at].upper] if gates else []
        if style == "json":
            shown.append(line | _in_one_line(values) | _named(ends))
        elif models.are_summarized:
            for name, value in values.items():
                own = ends if name == str(chosen[0]) else [None] * len(ends)
                known = value.to_dict() | {"value": _known(value)}
                shown.append(line | {"measure": name} | known | _named(own))
        else:
            shown.append(line | {name: v.value for name, v in values.items()} | _named(ends))
    if any(rows.is_summary and rows.joint.radius > 0 for _, rows in lines):
        notes.append(
            "lower and upper contain the value on the rows themselves, before they were rounded to "
            f"cells; {NOTHING} where cells tell nothing about it."
        )
        if not models.are_summaries:
            notes[-1] += " Name such a measure in --measures to compute it from every row."
    show(shown, style, head=models.head, notes=notes)
    context.exit(_judged(str(chosen[0]), [line for line, _ in lines], gates, limits))


def _known(found: Evaluation) -> float | None:
    """Return a value, or None where that of the cells may be far from that of the rows."""
    return None if found.lower is None and found.upper is None else found.value


def _in_one_line(values: dict[str, Evaluation]) -> dict[str, object]:
    """Return measures as JSON has them, from rows and from summaries alike."""
    return {name: _known(found) for name, found in values.items()} | {
        end: {name: getattr(found, end) for name, found in values.items()}
        for end in ("lower", "upper")
    }


def _named(ends: Sequence[float | None]) -> dict[str, float | None]:
    return dict(zip(("lower_limit", "upper_limit")[: len(ends)], ends, strict=True))


def _limits_of(given: dict[str, float | None], ceiling: float = 1.0) -> dict[str, float]:
    from caldist.data import validate

    return {
        option: validate.check_limit(
            option, limit, ceiling=ceiling, allow_zero=option == "--fail-above"
        )
        for option, limit in given.items()
        if limit is not None
    }


def _limits(measure: Measure[Any], given: dict[str, float | None]) -> dict[str, float]:
    """Return the options that were given, checked, with a measure that they can be judged by."""
    limits = _limits_of(given, measure.facts.ceiling)
    if limits and not measure.has_interval:
        message = (
            f"{next(iter(limits))} cannot be judged by {measure}, which has no limits for the "
            f"population: {measure.facts.no_interval} Name another measure first, as "
            "--measures smooth_ce."
        )
        raise ValueError(message)
    return limits


def _gates(models: Models, measure: Measure[Any]) -> list[Gate]:
    from caldist.inference.gates import gate_of
    from caldist.inference.limits import warn_if_few

    gates = []
    for _, rows in models.lines():
        warn_if_few(units_of(rows))
        gates.append(gate_of(rows, measure, 0.0, 1 - _ERROR))
    return gates


def _judged(
    name: str,
    lines: Sequence[dict[str, object]],
    gates: Sequence[Gate | Interval],
    limits: dict[str, float],
) -> int:
    """Say on stderr which lines do not pass, and return the exit code."""
    described = [(_described(line), gate) for line, gate in zip(lines, gates, strict=bool(gates))]
    code = 0
    for option, limit in limits.items():
        above = [(line, gate) for line, gate in described if gate.lower > limit]
        if above:
            what = ", ".join(f"{line} (at least {down(gate.lower, 6)})" for line, gate in above)
            say(f"failed: {name} is above {limit:g}, with 95% confidence: {what}", err=True)
            code = _FAILED
        unsure = [(line, gate) for line, gate in described if gate.lower <= limit <= gate.upper]
        if unsure and option == "--require-below":
            what = ", ".join(f"{line} (at most {up(gate.upper, 6)})" for line, gate in unsure)
            say(
                f"undecided: not enough rows to tell that {name} is below {limit:g}: {what}",
                err=True,
            )
            code = code or _UNDECIDED
    return code


def _chosen(measures: str | None) -> list[Measure[Any]]:
    from caldist.measures.registry import find, shown_in

    if measures is None or measures.strip() == "all":
        return shown_in("measure" if measures is None else "evaluate")
    names = [name.strip() for name in measures.split(",") if name.strip()]
    if not names:
        message = "--measures names no measure."
        raise ValueError(message)
    return [find(name, "--measures") for name in dict.fromkeys(names)]


def _described(line: dict[str, object]) -> str:
    return " / ".join(str(value) for key, value in line.items() if key not in COUNTS)
