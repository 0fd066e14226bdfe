"""``caldist recalibrate`` and ``caldist apply``: a map that calibrates predictions, and its use."""

from __future__ import annotations

import sys
from functools import partial
from math import isinf
from pathlib import Path
from typing import Any, cast

import click

from caldist._util.numbers import percent
from caldist.cli import _gates, _options
from caldist.cli._data import Data
from caldist.cli._gates import Ends, Limits, Line
from caldist.cli._output import noting
from caldist.cli._progress import working
from caldist.cli._streams import say
from caldist.errors import InvalidInput

_FAMILIES = ("auto", "identity", "shift", "temperature", "sigmoid", "beta", "isotonic", "monotone")


@click.command(cls=_options.Command)
@_options.data("clusters")
@_options.confidence
@click.option("--family", type=click.Choice(_FAMILIES), default="auto", show_default=True)
@_gates.options("the smooth calibration error after")
@_options.out(required=True, help="The map to write, .json.")
@click.pass_context
def recalibrate(
    context: click.Context,
    *,
    data: Data,
    confidence_level: float,
    family: str,
    limits: Limits,
    out: str,
) -> None:
    """Fit a monotone map that calibrates predictions, and say what is proved of it.

    The rows must be ones that the model has not been trained on. All of them fit the map and judge
    it, which is valid for monotone maps. FILE may be a summary (.npz). `caldist apply` uses maps.
    """
    _options.check_out(out, [".json"])
    limits.check()
    models = data.models()
    if len(models.rows) != 1:
        reason = f"names {len(models.rows)} models, and one is recalibrated at a time"
        raise InvalidInput(argument="--score", reason=reason, remedy="Name one.")
    from caldist.recalibration import recalibrate as fit  # not needed to refuse

    notes = list(models.notes)
    with noting(notes), working("recalibrating"):
        found = fit(
            cast("Any", next(iter(models.rows.values()))),  # checked already
            family=cast("Any", family),
            confidence_level=confidence_level,
            n_resamples=_options.DRAWS,
            rng=_options.SEED,
            progress=sys.stderr.isatty(),
        )
    assert found.map is not None  # noqa: S101 -- only maps made elsewhere may be none
    found.map.save(out)
    say("\n".join([str(found), *notes]) + f"\n\nwritten to {out}")
    if not found.after:
        context.exit(limits.without_statement(found.reason))
    after, level = found.after["smooth_ce"], percent(confidence_level)
    judged: list[tuple[Line, Ends]] = [({}, (after.lower, after.upper))]
    context.exit(limits.judge("the smooth calibration error after", level, judged))


@click.command(cls=_options.Command)
@click.argument("map_file", metavar="MAP")
@click.argument("files", nargs=-1, metavar="[FILE...]")
@click.option("--score", metavar="COL", help="The column of predicted probabilities.")
@click.option("--column", metavar="NAME", help="What to call the new column.")
@_options.out(help="The file to write: .csv, .tsv, .parquet or .jsonl.")
@click.option("--sql", metavar="COL", help="Print the map as an SQL expression of this column.")
@click.option(
    "--dialect",
    default="ansi",
    show_default=True,
    metavar="NAME",
    help="How --sql quotes names: ansi (DuckDB, SQLite, PostgreSQL, …), bigquery, mysql, spark or "
    "sqlserver.",
)
def apply(
    *,
    map_file: str,
    files: tuple[str, ...],
    score: str | None,
    column: str | None,
    out: str | None,
    sql: str | None,
    dialect: str,
) -> None:
    """Map the predictions in files of any size, or print the map as SQL.

    MAP is what `caldist recalibrate` wrote. FILE is CSV, Parquet or JSON lines, or - for standard
    input. All columns are copied, as they are where the kind of file stays the same, and the
    recalibrated probabilities are added. DuckDB does the work, piece by piece. A score that is
    missing or no probability is an error.
    """
    from caldist.recalibration import CalibrationMap

    table = CalibrationMap.load(map_file)
    if sql is not None:
        given = {"FILE": files, "--score": score, "--column": column, "--out": out}
        for name, value in given.items():
            if value:
                reason, remedy = "was given with --sql, which reads no file", "Leave it out."
                raise InvalidInput(argument=name, reason=reason, remedy=remedy)
        say(table.to_sql(sql, dialect=dialect))
        return
    if not files or score is None or column is None or out is None:
        given = {"FILE": files, "--score": score, "--column": column, "--out": out}
        raise InvalidInput(
            argument=next(name for name, value in given.items() if not value),
            reason="is missing",
            remedy="Name a FILE, --score, --column and --out, or print an expression with --sql "
            "COL.",
        )
    from caldist.cli._source import on_disk
    from caldist.engines.rewrite import FORMATS, NoProbabilityError, write_with_column
    from caldist.recalibration.sql import lookup

    _options.check_out(out, tuple(FORMATS))
    with working("applying"), on_disk(files) as paths:
        if Path(out).resolve() in {Path(path).resolve() for path in paths}:
            reason, remedy = "it is one of the files that are read", "Name another file."
            raise InvalidInput(argument="--out", value=out, reason=reason, remedy=remedy)
        try:
            write_with_column(
                paths,
                source=score,
                column=column,
                mapping=partial(lookup, table.x, table.y),
                out=Path(out),
            )
        except NoProbabilityError as error:
            raise (_placed(paths, score) or error) from error
    say(f"{out}: {column} from {score} by {table!r}")


def _placed(paths: list[str], score: str) -> InvalidInput | None:
    """Return the error for the first score that is no probability, with its place, if it is known.

    Files that are large are not read once more for that.
    """
    from caldist.cli._missing_values import placed
    from caldist.cli._source import may_be_read_again, open_source
    from caldist.data import validate

    if not may_be_read_again(paths):
        return None
    source = open_source(paths)
    scores = source.read([score]).numbers[score]
    bad = (~((scores >= 0) & (scores <= 1))).nonzero()[0]
    if bad.size == 0:
        return None
    row = int(bad[0])
    reason, remedy = "it is no probability", "Correct it."  # no number, or an infinite one
    if not isinf(scores[row]):
        reason, remedy = validate.why_no_probability(scores[bad], "apply the sigmoid first")
    return placed(source, row, score, reason, remedy)
