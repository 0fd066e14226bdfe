"""``caldist test`` and ``caldist compare``: statements about the population."""

from __future__ import annotations

import sys
from typing import Any

import click

from caldist.cli import _options
from caldist.cli._output import format_option, show

__all__ = ["compare", "test"]


@click.command()
@_options.data
@_options.resampling
@click.option("--measure", default="auto", show_default=True, metavar="NAME", help="The statistic.")
@click.option(
    "--tolerance",
    type=float,
    metavar="DISTANCE",
    help="Test whether the distance to calibration is at most this, instead of 0.",
)
@format_option
def test(
    *,
    files: tuple[str, ...],
    label: str | None,
    scores: tuple[str, ...],
    weight: str | None,
    groups: str | None,
    resamples: int,
    seed: int,
    measure: str,
    tolerance: float | None,
    style: str,
) -> None:
    """Test whether predictions are calibrated.

    The p-value is exact in finite samples: how often would calibrated predictions look this bad?
    With --groups whole clusters are drawn, and it is right for many clusters.
    """
    from caldist.cli._columns import read_columns
    from caldist.inference import calibration_test

    columns = read_columns(files, label, scores, weight, [groups] if groups else [])
    rows = []
    for name, prediction in columns.scores.items():
        found = calibration_test(
            columns.label,
            prediction,
            measure=measure,
            tolerance=tolerance,
            n_resamples=resamples,
            sample_weight=columns.weight,
            groups=columns.others[groups] if groups else None,
            rng=seed,
            progress=sys.stderr.isatty(),
        )
        rows.append(
            {
                "score": name,
                "rows": columns.label.size,
                "measure": found.measure,
                "statistic": found.statistic,
                "pvalue": found.pvalue,
            }
        )
    head = _head(files, columns.label_name, weight, groups, resamples, seed)
    show(rows, style, head=head | {"tolerance": tolerance}, notes=[])


@click.command()
@_options.data
@_options.confidence
@_options.resampling
@click.option("--measure", default="smooth_ce", show_default=True, metavar="NAME")
@format_option
def compare(
    *,
    files: tuple[str, ...],
    label: str | None,
    scores: tuple[str, ...],
    weight: str | None,
    confidence_level: float,
    groups: str | None,
    resamples: int,
    seed: int,
    measure: Any,
    style: str,
) -> None:
    """Compare the calibration of two or more models on the same rows.

    Gives the difference of a measure for every pair of --score columns, with intervals that hold
    for all pairs at once.
    """
    from caldist.cli._columns import read_columns
    from caldist.inference import compare_all

    if len(set(scores)) < 2:
        message = "name at least two different columns to compare: --score A --score B."
        raise ValueError(message)
    columns = read_columns(files, label, scores, weight, [groups] if groups else [])
    found = compare_all(
        columns.label,
        columns.scores,
        measure=measure,
        confidence_level=confidence_level,
        n_resamples=resamples,
        sample_weight=columns.weight,
        groups=columns.others[groups] if groups else None,
        rng=seed,
        progress=sys.stderr.isatty(),
    )
    rows = [
        {
            "score_a": pair[0],
            "score_b": pair[1],
            f"{measure}_a": result.value_a,
            f"{measure}_b": result.value_b,
            "difference": result.difference,
            "low": result.low,
            "high": result.high,
            "pvalue": result.pvalue,
        }
        for pair, result in found.pairs.items()
    ]
    head = _head(files, columns.label_name, weight, groups, resamples, seed)
    head |= {"measure": measure, "confidence_level": confidence_level}
    show(rows, style, head=head, notes=[])


def _head(
    files: tuple[str, ...],
    label: str,
    weight: str | None,
    groups: str | None,
    resamples: int,
    seed: int,
) -> dict[str, Any]:
    return {
        "files": list(files),
        "label": label,
        "weight": weight,
        "groups": groups,
        "n_resamples": resamples,
        "seed": seed,
    }
