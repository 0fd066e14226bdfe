"""``caldist report``: everything about the calibration of one or more models, in one file."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from caldist.cli import _options

__all__ = ["report"]

_SUFFIXES = (".html", ".json", ".md")


@click.command()
@_options.data
@click.option("--by", metavar="COL", help="Report each value of this column as a sub-group.")
@_options.confidence
@_options.resampling
@_options.out(
    default="report.html", show_default=True, help="The file to write: .html, .json or .md."
)
def report(
    *,
    files: tuple[str, ...],
    label: str | None,
    scores: tuple[str, ...],
    weight: str | None,
    by: str | None,
    confidence_level: float,
    groups: str | None,
    resamples: int,
    seed: int,
    out: str,
) -> None:
    """Write a report: a verdict in words, figures, intervals, tests and sub-groups."""
    from caldist._util.optional import require
    from caldist.cli._columns import read_columns
    from caldist.reporting import report as make_report

    _options.check_out(out, _SUFFIXES)
    path = Path(out)
    if path.suffix == ".html":  # said now, not after the work
        require("jinja2", extra="report")
        require("matplotlib", extra="report")
    others = [name for name in (by, groups) if name]
    columns = read_columns(files, label, scores, weight, others)
    found = make_report(
        columns.label,
        columns.scores,
        by=columns.others[by] if by else None,
        sample_weight=columns.weight,
        groups=columns.others[groups] if groups else None,
        confidence_level=confidence_level,
        n_resamples=resamples,
        rng=seed,
        progress=sys.stderr.isatty(),
    )
    if path.suffix == ".html":
        found.to_html(path)
    elif path.suffix == ".json":
        found.to_json(path)
    else:
        found.to_markdown(path)
    click.echo(f"{found}\n\nwritten to {out}")
