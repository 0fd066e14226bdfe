"""``caldist measure``: values of measures, of columns or of saved summaries, and gates on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from caldist.cli import _clinical, _gates, _options
from caldist.cli._data import Data, Models, needs_rows
from caldist.cli._gates import Ends, Limits, in_columns
from caldist.cli._output import NOTHING, format_option, noting, show
from caldist.cli._progress import working
from caldist.errors import InvalidInput
from caldist.inference.sample import units_of

if TYPE_CHECKING:
    from caldist.measures.base import Measure
    from caldist.measures.evaluation import Evaluation

_ERROR = 0.05  # of each one-sided limit


@click.command(cls=_options.Command)
@_options.data("clusters", "by", "classes", "normalize")
@_options.measures(
    "Names with commas between, all, or clinical: calibration intercept and slope, observed over "
    "expected, ICI, E50, E90, Emax. By default a few; the output names the others."
)
@click.option(
    "--each-class", is_flag=True, help="Of several classes: a line for each, the worst first."
)
@format_option
@_gates.options("the first measure of the population")
@click.pass_context
def measure(
    context: click.Context,
    *,
    data: Data,
    measures: tuple[str, ...],
    each_class: bool,
    style: str,
    limits: Limits,
) -> None:
    """Measure calibration of the predictions in a file.

    FILE is CSV, Parquet or JSON lines, a glob in quotes, - for standard input, or a summary (.npz)
    that `caldist summarize` wrote. Bad rows are an error; those without a value can be left out.

    With --fail-above or --require-below lower_limit and upper_limit are shown as well: one-sided
    limits of the population's value, each wrong with probability 5%. They need no random draws.
    Of several lines the worst counts. JSON has a decision for each: pass, fail or undecided, by
    both limits.

    Several classes, by a pattern or --classes, have the measures classwise_distance, smooth_ce and
    kernel_ce; noise is what classwise_distance would be on average if they were calibrated.
    """
    from caldist.data.doubts import doubts_said
    from caldist.measures.evaluation import evaluate
    from caldist.measures.registry import shown_in

    clinical = measures == (_options.CLINICAL,)
    if clinical:
        limits.refuse(
            "cannot be judged by --measure clinical, which is several numbers",
            "Name one measure, as --measure smooth_ce.",
        )
    elif not data.may_have_classes:  # refused before a file is read
        limits.check_measure(_chosen(measures)[0])
    models = data.read(whole=needs_rows(measures))
    if not isinstance(models, Models):
        from caldist.cli import _class_measures

        asked = _class_measures.Asked(measures, limits, each_class)
        judged = _class_measures.measured(models, asked, style)
        context.exit(limits.judge(_class_measures.GATED, "95%", judged))
    if each_class:
        raise InvalidInput(
            argument="--each-class",
            reason="was given, and there are no classes",
            remedy="Name their columns by a pattern, as --score 'p_*', or with --classes.",
        )
    if clinical:
        shown, notes = _clinical.clinical_lines(models)
        show(shown, style, head=models.head, notes=[*models.notes, *notes])
        return
    chosen = _chosen(measures)
    limits.check_measure(chosen[0])
    notes = list(models.notes)
    if not measures:
        others = [str(other) for other in shown_in("evaluate") if other not in chosen]
        notes.append(f"Left out: {', '.join(others)}. All of them: --measure all")
    with working("measuring"):
        lines = list(models.lines())
        with doubts_said():
            found = [
                (line, evaluate(rows, measures=chosen))  # type: ignore[arg-type]  # checked
                for line, rows in lines
            ]
        gates: list[Ends] = []
        if limits:
            with noting(notes):
                gates = _ends(models, chosen[0])
            notes.append(
                f"lower_limit and upper_limit are of {chosen[0]} of the population; each is on the "
                "wrong side of it with probability 5%."
            )
    shown = []
    for at, (line, values) in enumerate(found):
        ends = gates[at] if gates else None
        if style == "json":
            shown.append(line | _in_one_line(values) | limits.decided(ends))
        elif models.are_summarized:
            for name, value in values.items():
                own = in_columns(ends if name == str(chosen[0]) or ends is None else (None, None))
                known = value.to_dict() | {"value": _known(value)}
                shown.append(line | {"measure": name} | known | own)
        else:
            shown.append(line | {name: v.value for name, v in values.items()} | in_columns(ends))
    if any(rows.is_summary and rows.joint.radius > 0 for _, rows in lines):
        notes.append(
            "lower and upper contain the value on the rows themselves, before they were rounded to "
            f"cells; {NOTHING} where cells tell nothing about it."
        )
        if not models.are_summaries:
            notes[-1] += " Name such a measure in --measure to compute it from every row."
    show(shown, style, head=models.head, notes=notes)
    judged = [(line, ends) for (line, _), ends in zip(lines, gates, strict=bool(gates))]
    context.exit(limits.judge(str(chosen[0]), "95%", judged))


def _known(found: Evaluation) -> float | None:
    """Return a value, or None where that of the cells may be far from that of the rows."""
    return None if found.lower is None and found.upper is None else found.value


def _in_one_line(values: dict[str, Evaluation]) -> dict[str, object]:
    """Return measures as JSON has them, from rows and from summaries alike."""
    return {name: _known(found) for name, found in values.items()} | {
        end: {name: getattr(found, end) for name, found in values.items()}
        for end in ("lower", "upper")
    }


def _ends(models: Models, measure: Measure[Any]) -> list[Ends]:
    """Return one-sided limits of each line, each wrong with probability 5%."""
    from caldist.inference.gates import gate_of
    from caldist.inference.limits import warn_if_few

    found = []
    for _, rows in models.lines():
        warn_if_few(units_of(rows))
        gate = gate_of(rows, measure, 0.0, 1 - _ERROR)
        found.append((gate.lower, gate.upper))
    return found


def _chosen(measures: tuple[str, ...]) -> list[Measure[Any]]:
    from caldist.measures.registry import find, shown_in

    if not measures:
        return shown_in("measure")
    if measures == (_options.ALL,):
        return shown_in("evaluate")
    return [find(name, "--measure") for name in measures]
