"""``caldist summarize`` and ``caldist merge``: fixed-size summaries of any number of rows."""

from __future__ import annotations

from typing import Literal

import click

from caldist.cli import _options
from caldist.cli._working import working

__all__ = ["merge", "summarize"]


@click.command()
@_options.data
@click.option(
    "--bits", type=int, default=16, show_default=True, help="2^BITS cells between 0 and 1."
)
@click.option(
    "--invalid",
    type=click.Choice(["raise", "count"]),
    default="raise",
    show_default=True,
    help="What to do with rows without a valid label or prediction.",
)
@_options.out(required=True, help="The summary to write, .npz.")
def summarize(
    *,
    files: tuple[str, ...],
    label: str | None,
    scores: tuple[str, ...],
    weight: str | None,
    bits: int,
    invalid: Literal["raise", "count"],
    out: str,
) -> None:
    """Summarise a file of any size on a grid.

    The summary is small, merges with others of the same grid to the bit, and `caldist measure`
    reads it. DuckDB does the work.
    """
    from caldist.engines import summarize as summarize_files

    if label is None or len(scores) != 1:
        message = "a summary has one label and one prediction: name them with --label and --score."
        raise ValueError(message)
    _options.check_out(out, [".npz"])
    with working("summarising"):
        joint = summarize_files(
            list(files),
            y_true=label,
            y_prob=scores[0],
            sample_weight=weight,
            bits=bits,
            invalid=invalid,
        )
    joint.save(out)
    click.echo(f"{out}: {joint!r}")


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="SUMMARY...")
@_options.out(required=True, help="The summary to write, .npz.")
def merge(*, files: tuple[str, ...], out: str) -> None:
    """Merge summaries of different rows into one, in any order, to the bit."""
    from caldist.data.joint import Joint

    _options.check_out(out, [".npz"])
    first, *others = files
    joint = Joint.load(first)
    for path in others:
        joint += Joint.load(path)
    joint.save(out)
    click.echo(f"{out}: {joint!r}")
