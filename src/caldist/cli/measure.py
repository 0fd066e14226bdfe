"""``caldist measure``: values of measures, of columns or of a saved summary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from caldist.cli import _options
from caldist.cli._output import format_option, show
from caldist.cli._working import working

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from caldist.cli._columns import Columns

__all__ = ["measure"]

_DEFAULT = (
    "smooth_ce",
    "lower_distance",
    "upper_distance",
    "kernel_ce",
    "binned_ece",
    "ece",
    "brier_score",
)


@click.command()
@_options.data
@click.option("--by", metavar="COL", help="One line for each value of this column.")
@click.option(
    "--measures",
    metavar="NAMES",
    help=f"Names with commas between, or all. Default: {', '.join(_DEFAULT)}.",
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
    files: tuple[str, ...],
    label: str | None,
    scores: tuple[str, ...],
    weight: str | None,
    by: str | None,
    measures: str | None,
    style: str,
    fail_above: float | None,
) -> None:
    """Measure calibration of the predictions in a file.

    FILE is CSV, Parquet or JSON lines, a glob in quotes, - for standard input, or a summary (.npz)
    that `caldist summarize` wrote. Bad rows are an error, never left out.
    """
    from caldist.measures.registry import MEASURES

    names = _measure_names(measures)
    notes = []
    if measures is None:
        others = [name for name in MEASURES if name not in names]
        notes.append(f"Left out: {', '.join(others)}. All of them: --measures all")
    head: dict[str, object] = {"files": list(files)}
    if all(name.endswith(".npz") for name in files):
        _refuse_columns(label=label, score=scores, weight=weight, by=by)
        rows = [row for name in files for row in _summary_rows(name, names)]
        notes.append(
            "lower and upper contain the value on the rows themselves, before they were rounded to "
            "cells; without them, cells tell nothing about it."
        )
    else:
        from caldist.cli._columns import read_columns

        columns = read_columns(files, label, scores, weight, [by] if by else [])
        head |= {"label": columns.label_name, "weight": weight, "by": by}
        with working("measuring"):
            rows = list(_column_rows(columns, by, names))
    show(rows, style, head=head, notes=notes)
    if fail_above is not None:
        above = [row for row in rows if _value(row, names[0]) > fail_above]
        if above:
            what = ", ".join(_described(row, names[0]) for row in above)
            click.echo(f"{names[0]} is above {fail_above:g}: {what}", err=True)
            context.exit(1)


def _described(row: dict[str, object], name: str) -> str:
    line = [str(row[key]) for key in ("file", "score", "group") if key in row]
    return f"{' / '.join(line)} ({_value(row, name):.6f})"


def _measure_names(measures: str | None) -> list[str]:
    from caldist.measures.registry import MEASURES

    if measures is None:
        return list(_DEFAULT)
    if measures.strip() == "all":
        return list(MEASURES)
    names = [name.strip() for name in measures.split(",") if name.strip()]
    for name in names:
        if name not in MEASURES:
            message = f"--measures names {name!r}; known are {', '.join(MEASURES)}, or all."
            raise ValueError(message)
    if not names:
        message = "--measures names no measure."
        raise ValueError(message)
    return list(dict.fromkeys(names))


def _value(row: dict[str, object], name: str) -> float:
    value = row[name] if name in row else row["value"] if row.get("measure") == name else 0.0
    assert isinstance(value, float)  # noqa: S101 -- every measure is a float
    return value


def _column_rows(
    columns: Columns, by: str | None, names: Sequence[str]
) -> Iterator[dict[str, object]]:
    """Give a line for each score and group."""
    import numpy as np

    from caldist.data.joint import Joint
    from caldist.measures.evaluation import evaluate

    parts: list[tuple[str | None, NDArray[np.intp] | slice]] = [(None, slice(None))]
    if by is not None:
        keys, which = np.unique(columns.others[by].astype(str), return_inverse=True)
        order = np.argsort(which, kind="stable")
        rows_of = np.split(order, np.cumsum(np.bincount(which))[:-1])
        parts = list(zip(keys.tolist(), rows_of, strict=True))
    for score, prediction in columns.scores.items():
        for key, rows in parts:
            joint = Joint.from_arrays(
                columns.label[rows],
                prediction[rows],
                sample_weight=None if columns.weight is None else columns.weight[rows],
            )
            line: dict[str, object] = {"score": score}
            if by is not None:
                line["group"] = key
            line["rows"] = joint.n_rows
            found = evaluate(joint, measures=names)
            yield line | {name: found[name].value for name in names}


def _summary_rows(path: str, names: Sequence[str]) -> Iterator[dict[str, object]]:
    """Give a line for each measure of a saved summary, with its certified bounds."""
    from caldist.data.joint import Joint
    from caldist.measures.evaluation import evaluate

    joint = Joint.load(path)
    for name, found in evaluate(joint, measures=names).items():
        yield {
            "file": path,
            "rows": joint.n_rows,
            "measure": name,
            "value": found.value,
            "lower": found.lower,
            "upper": found.upper,
        }


def _refuse_columns(**given: object) -> None:
    for option, value in given.items():
        if value:
            message = f"--{option} has no meaning for a summary, which has no columns."
            raise ValueError(message)
