"""``caldist report``: everything about the calibration of one or more models, in one file."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from caldist.cli import _options
from caldist.cli._data import Data, Models, needs_rows
from caldist.cli._streams import say

if TYPE_CHECKING:
    from collections.abc import Mapping

    from caldist.cli._classes import ClassModels
    from caldist.data.class_rows import ClassRows
    from caldist.data.rows import Rows

_SUFFIXES = (".html", ".json")


@click.command(cls=_options.Command)
@_options.data("by_columns", "clusters", "classes", "normalize")
@_options.measures(
    "The table of measures: names with commas between, all, or clinical, for no others than the "
    "clinical measures that every report has. By default a few."
)
@click.option(
    "--tolerance",
    type=float,
    metavar="DISTANCE",
    help="Say whether the distance to calibration is shown to be at most this.",
)
@_options.confidence
@_options.out(
    default="report.html",
    show_default=True,
    help="The file to write: .html or .json; - for HTML on standard output.",
)
@click.option(
    "--exact",
    is_flag=True,
    help="Read every row of Parquet files, however many. By default ten million rows and more of "
    "one model are summarised first, as by caldist summarize.",
)
def report(
    *,
    data: Data,
    measures: tuple[str, ...],
    tolerance: float | None,
    confidence_level: float,
    out: str,
    exact: bool,
) -> None:
    """Write a report: a verdict in words, figures, intervals, tests and sub-groups.

    FILE may be summaries (.npz), each a model of its own. With a pattern or --classes the report is
    about several classes.
    """
    from caldist._util.optional import require

    to_stdout = out == "-"
    if not to_stdout:
        _options.check_out(out, _SUFFIXES)
    path = Path(out)
    if to_stdout or path.suffix == ".html":  # said now, not after the work
        require("jinja2", extra="report")
        require("matplotlib", extra="report")
    chosen = _chosen(measures)
    models = data.read(whole=exact or needs_rows(measures))
    if isinstance(models, Models) and models.are_summarized and not models.are_summaries:
        say(
            "The report uses this summary; --exact uses every row, with more time and memory.",
            err=True,
        )
    from caldist.reporting import report as make_report  # not needed to refuse

    found = make_report(
        cast("Any", _named(models)),  # checked, which the public types do not describe
        by=(models.by or None) if isinstance(models, Models) else None,
        measures=chosen,
        tolerance=tolerance,
        confidence_level=confidence_level,
        n_resamples=_options.DRAWS,
        rng=_options.SEED,
        source=_source(models, data),
        progress=sys.stderr.isatty(),
    )
    if isinstance(models, Models):
        doubts = (*found.data.doubts, *models.doubts)
        found = replace(found, data=replace(found.data, doubts=doubts))
    said = "\n\n".join([str(found), *models.notes])
    if to_stdout:
        click.echo(found.to_html().encode(), nl=False)
        say(said, err=True)
        return
    if path.suffix == ".html":
        found.to_html(path)
    else:
        found.to_json(path)
    say(f"{said}\n\nwritten to {out}")


def _chosen(measures: tuple[str, ...]) -> list[Any] | None:
    """Return the measures of the table, None for those that it has by default."""
    from caldist.measures.registry import find, shown_in

    if measures == (_options.ALL,):
        return shown_in("evaluate")
    names = [name for name in measures if name != _options.CLINICAL]
    return [find(name, "--measure") for name in names] if measures else None


def _source(models: Models | ClassModels, data: Data) -> dict[str, object]:
    """Return where the rows come from, as a report says it; summaries say what they left out."""
    files = ", ".join("standard input" if name == "-" else name for name in data.files)
    summaries = isinstance(models, Models) and models.are_summaries
    dropped = None if models.dropped is None or summaries else models.dropped.rows
    return {"file": files, "rows_dropped": dropped}


def _named(models: Models | ClassModels) -> Mapping[str, Rows | ClassRows]:
    """Return models with the short names of their files, or of patterns, where these differ."""
    if not isinstance(models, Models):
        stars = {name.replace("*", "").strip("_-. "): rows for name, rows in models.rows.items()}
        return stars if "" not in stars and len(stars) == len(models.rows) else models.rows
    short = {Path(name).stem: rows for name, rows in models.rows.items()}
    return short if models.are_summaries and len(short) == len(models.rows) else models.rows
