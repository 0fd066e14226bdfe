"""``caldist measure``: values of measures, of columns or of saved summaries."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from caldist.cli import _options
from caldist.cli._data import Data
from caldist.cli._output import format_option, show
from caldist.cli._working import working

if TYPE_CHECKING:
    from caldist.measures._measure import Measure
    from caldist.measures.evaluation import Evaluation


@click.command()
@_options.data("by")
@click.option(
    "--measures",
    metavar="NAMES",
    help="Names with commas between, or all. By default a few; the output names the others.",
)
@format_option
@click.option(
    "--fail-above",
    type=float,
    metavar="LIMIT",
    help="End with exit code 1 if the first measure exceeds this in any line.",
)
@click.pass_context
def measure(
    context: click.Context,
    *,
    data: Data,
    measures: str | None,
    style: str,
    fail_above: float | None,
) -> None:
    """Measure calibration of the predictions in a file.

    FILE is CSV, Parquet or JSON lines, a glob in quotes, - for standard input, or a summary (.npz)
    that `caldist summarize` wrote. Bad rows are an error, never left out.
    """
    from caldist import _validate
    from caldist.measures.evaluation import evaluate
    from caldist.measures.registry import shown_in

    chosen = _chosen(measures)
    if fail_above is not None:
        fail_above = _validate.check_nonnegative("--fail-above", fail_above)
    notes = []
    if measures is None:
        others = [str(other) for other in shown_in("evaluate") if other not in chosen]
        notes.append(f"Left out: {', '.join(others)}. All of them: --measures all")
    models = data.models()
    with working("measuring"):
        found = [(line, evaluate(rows.joint, measures=chosen)) for line, rows in models.lines()]
    gated = [(_described(line), values[str(chosen[0])]) for line, values in found]
    if fail_above is not None:
        _refuse_unbounded(str(chosen[0]), gated)
    if models.are_summaries:
        rows = [
            line | {"measure": name} | value.to_dict()
            for line, values in found
            for name, value in values.items()
        ]
        notes.append(
            "lower and upper contain the value on the rows themselves, before they were rounded to "
            "cells; without them, cells tell nothing about it."
        )
    else:
        rows = [
            line | {name: value.value for name, value in values.items()} for line, values in found
        ]
    show(rows, style, head=models.head, notes=notes)
    # Not "above": a value that is not a number must not pass.
    above = [] if fail_above is None else [x for x in gated if not x[1].value <= fail_above]
    if above:
        what = ", ".join(f"{line} ({value.value:.6f})" for line, value in above)
        click.echo(f"{chosen[0]} is above {fail_above:g}: {what}", err=True)
        context.exit(1)


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
    return " / ".join(str(value) for key, value in line.items() if key != "rows")


def _refuse_unbounded(name: str, gated: Iterable[tuple[str, Evaluation]]) -> None:
    """Refuse a limit for a value that may be any other on the rows themselves."""
    for line, value in gated:
        if value.upper is None:
            message = (
                f"--fail-above cannot be judged by {name} of {line}: the predictions were rounded "
                f"to cells, which tell nothing about {name} on the rows themselves. Name a measure "
                "with lower and upper first, as --measures smooth_ce, or pass the rows."
            )
            raise ValueError(message)
