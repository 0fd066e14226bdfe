"""``caldist test`` and ``caldist compare``: statements about the population."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import click

from caldist._util.numbers import least_of
from caldist.cli import _options
from caldist.cli._data import Data, Models, needs_rows
from caldist.cli._output import PValue, format_option, noting, show
from caldist.cli._streams import say
from caldist.errors import InvalidInput

if TYPE_CHECKING:
    from caldist.cli._classes import ClassModels
    from caldist.inference import Comparison
    from caldist.inference.resampling import Resampler
    from caldist.measures.base import Measure


@click.command(cls=_options.Command)
@_options.data("clusters", "classes", "normalize")
@_options.measure("auto", "The statistic.")
@click.option(
    "--tolerance",
    type=float,
    metavar="DISTANCE",
    help="Test whether the distance to calibration is at most this, instead of 0.",
)
@click.option(
    "--fail-below",
    type=float,
    metavar="P",
    help="End with exit code 1 if the p-value of any line is below this.",
)
@format_option
@click.pass_context
def test(
    context: click.Context,
    *,
    data: Data,
    measure: str,
    tolerance: float | None,
    fail_below: float | None,
    style: str,
) -> None:
    """Test whether predictions are calibrated.

    The p-value is exact in finite samples: how often would calibrated predictions look this bad?
    With --clusters the residuals of whole clusters change sign, which is right for many clusters.
    FILE may be summaries (.npz), each of which is tested; rounding makes their p-values larger.
    Of several classes --measure is auto, classwise_smooth_ce, kernel_ce, brier_score or top_label.
    """
    from caldist.data import validate
    from caldist.inference import calibration_test

    if fail_below is not None:
        fail_below = validate.check_fraction("--fail-below", fail_below)
    models = data.read(whole=needs_rows([measure]))
    if not isinstance(models, Models):
        if tolerance is not None:
            raise InvalidInput(
                argument="--tolerance",
                reason="was given with several classes, whose test is of perfect calibration",
                remedy="caldist measure --require-below decides about the classwise distance.",
            )
        tested = _test_classes(models, measure, style)
        context.exit(_judged(tested, fail_below))
    shown, notes = ["measure", "statistic", "pvalue"], list(models.notes)
    if models.are_summarized or style == "json":
        shown.append("rounding")
    if models.are_summarized:
        was = "added to pvalue" if tolerance is None else "taken off the statistic for pvalue"
        notes.append(f"rounding was {was} because the predictions are rounded to cells.")
    lines = []
    for line, rows in models.lines():
        with noting(notes):
            found = calibration_test(
                cast("Any", rows),  # checked, which the public types do not describe
                measure=measure,
                tolerance=tolerance,
                n_resamples=_options.DRAWS,
                rng=_options.SEED,
                progress=sys.stderr.isatty(),
            )
        pvalue = {"pvalue": PValue(found.pvalue, least_of(_options.DRAWS))}
        lines.append(line | {key: getattr(found, key) for key in shown} | pvalue)
    head = models.head | {
        "n_resamples": _options.DRAWS,
        "seed": _options.SEED,
        "tolerance": tolerance,
    }
    show(lines, style, head=head, notes=notes)
    context.exit(_judged(lines, fail_below))


def _drawn() -> dict[str, object]:
    """Return what JSON says of random draws."""
    return {"n_resamples": _options.DRAWS, "seed": _options.SEED}


def _judged(lines: Sequence[Mapping[str, Any]], limit: float | None) -> int:
    """Say on stderr which lines have a p-value below the limit, and return the exit code."""
    if limit is None:
        return 0
    below = [line for line in lines if line["pvalue"] < limit]
    if below:
        what = ", ".join(
            f"{line.get('score') or line.get('file')} ({line['pvalue']:.3g})" for line in below
        )
        say(f"failed: the p-value is below {limit:g}: {what}", err=True)
    return 1 if below else 0


def _test_classes(models: ClassModels, measure: str, style: str) -> list[dict[str, object]]:
    """Print the test of several classes, and return the line of each model that is the answer."""
    from caldist.multiclass import calibration_test

    notes = list(models.notes)
    lines, answers = [], []
    for line, rows in models.lines():
        found = calibration_test(
            cast("Any", rows),  # checked, which the public types do not describe
            cast("Any", None),
            measure=cast("Any", measure),
            n_resamples=_options.DRAWS,
            rng=_options.SEED,
            progress=sys.stderr.isatty(),
        )
        for part in (found, *found.components):
            pvalue = PValue(part.pvalue, least_of(_options.DRAWS))
            shown = {"measure": part.measure, "statistic": part.statistic, "pvalue": pvalue}
            lines.append(line | shown)
        answers.append(line | {"pvalue": found.pvalue})
    if measure == "auto":
        notes.append(
            "auto is the answer: it combines the others, whose p-values hold one by one only."
        )
    head = models.head | _drawn()
    show(lines, style, head=head, notes=notes)
    return answers


@click.command(cls=_options.Command)
@_options.data("clusters", "classes", "normalize")
@_options.confidence
@_options.measure("smooth_ce", "What is compared.")
@format_option
def compare(
    *,
    data: Data,
    confidence_level: float,
    measure: str,
    style: str,
) -> None:
    """Compare the calibration of models on the same rows, or of two independent samples.

    Gives the difference of a measure for every pair of --score columns, with intervals that hold
    for all pairs at once. Two summaries (.npz) are compared as samples that are independent of each
    other: before and after, two months. Of several classes each --score is the pattern of a model,
    and half the sum of smCE over classes is compared.
    """
    from caldist.data import validate
    from caldist.inference.comparison import comparable
    from caldist.inference.resampling import Resampler

    chosen = comparable(measure)
    level = validate.check_fraction("--confidence-level", confidence_level)
    resampler = Resampler.of(
        _options.SEED, n_resamples=_options.DRAWS, progress=sys.stderr.isatty()
    )
    models = data.read()
    head = models.head | _drawn()
    if not isinstance(models, Models):
        if chosen.name != "smooth_ce":
            raise InvalidInput(
                argument="--measure",
                value=measure,
                reason="of several classes smooth_ce of each class is compared",
                remedy="Leave it out, or pass one class as --score with labels 0 and 1.",
            )
        _compare_classes(models, level, resampler, head, style)
        return
    notes = list(models.notes)
    with noting(notes):
        found = _pairs(models, chosen, level, resampler)
    if models.are_summaries:
        notes.append(
            "The summaries are taken for independent samples. Two models on the same rows are not: "
            "pass the table, with --score A --score B. lower and upper allow for predictions "
            "rounded to cells, by up to rounding."
        )
    lines = [
        {
            f"{models.named_by}_a": first,
            f"{models.named_by}_b": second,
            f"{chosen}_a": pair.value_a,
            f"{chosen}_b": pair.value_b,
            "difference": pair.difference,
            "lower": pair.lower,
            "upper": pair.upper,
            "pvalue": PValue(pair.pvalue, pair.least_pvalue),
        }
        | ({} if models.dropped is None else {"dropped": models.dropped.rows})
        | ({"rounding": pair.rounding} if models.are_summaries or style == "json" else {})
        for (first, second), pair in found.items()
    ]
    made = next(iter(found.values())).n_resamples  # many rows, and means, need none
    head |= {"n_resamples": made, "measure": str(chosen), "confidence_level": level}
    show(lines, style, head=head, notes=notes)


def _compare_classes(
    models: ClassModels,
    level: float,
    resampler: Resampler,
    head: dict[str, object],
    style: str,
) -> None:
    from caldist.multiclass.comparison import paired_models
    from caldist.multiclass.intervals import warn_if_few

    if len(models.rows) < 2:
        raise InvalidInput(
            argument="--score",
            reason="names one model, and at least two are compared",
            remedy="Name each by a pattern: --score 'a_*' --score 'b_*'.",
        )
    notes = list(models.notes)
    with noting(notes):
        warn_if_few(next(iter(models.rows.values())))
        found = paired_models(models.rows, level, resampler)
    name = "classwise_smooth_ce"
    lines = [
        {
            "score_a": first,
            "score_b": second,
            f"{name}_a": pair.value_a,
            f"{name}_b": pair.value_b,
            "difference": pair.difference,
            "lower": pair.lower,
            "upper": pair.upper,
            "pvalue": PValue(pair.pvalue, pair.least_pvalue),
        }
        | ({} if models.dropped is None else {"dropped": models.dropped.rows})
        for (first, second), pair in found.items()
    ]
    show(lines, style, head=head | {"measure": name, "confidence_level": level}, notes=notes)


def _pairs(
    models: Models, measure: Measure[Any], level: float, resampler: Resampler
) -> dict[tuple[str, str], Comparison]:
    """Compare summaries of different rows, or columns of predictions on the same ones."""
    from caldist.inference.comparison import independent_comparison, paired_comparisons

    number = len(models.rows)
    if models.are_summaries:
        if number != 2:
            raise InvalidInput(
                argument="FILE",
                reason=f"names {number} summaries, and two are compared, as samples of different "
                "rows",
                remedy="To compare models on the same rows pass the table, with --score A --score "
                "B.",
            )
        (name_a, a), (name_b, b) = models.rows.items()
        return {(name_a, name_b): independent_comparison((a, b), measure, level, resampler)}
    if number < 2:
        raise InvalidInput(
            argument="--score",
            reason="names one column, and at least two different ones are compared",
            remedy="Name them: --score A --score B.",
        )
    return paired_comparisons(models.rows, measure, level, resampler)
