"""A report as text in aligned tables, and the words that its page shares with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from caldist._util.escaping import for_line, for_terminal
from caldist._util.numbers import (
    down,
    ends,
    least_of,
    number,
    percent,
    probability,
    rate,
    short,
    signed,
    up,
)
from caldist._util.text_tables import aligned
from caldist.clinical.rates import factors
from caldist.measures.registry import shown_in
from caldist.measures.smooth_ce import smooth_ce
from caldist.reporting.class_verdict import CONFIDENCE, DIGITS
from caldist.reporting.model import (
    ClassModelReport,
    ClassReport,
    DataReport,
    EstimateReport,
    GroupReport,
    LossReport,
    MeasureReport,
    ModelReport,
    PairReport,
    Report,
)
from caldist.reporting.verdict import readable

Table = list[list[str]]
Tested = TypeVar("Tested", PairReport, GroupReport)

ROWS_OF_A_PAGE = 500  # of a table in HTML
_ROWS_PRINTED = 40
RECALIBRATIONS = "What recalibration would do"
CLINICAL = "Clinical measures"
CLASS_TWIN = "CWs, half the sum of smCE over classes"
CLASS_LIMITS = "lower limits hold with {} confidence for all of them"
_CLASSES_PRINTED = 10
_INDEPENDENT = "taken as independent"
_LEFT = {"class", "model", "recalibration", "minus model", "by", "group", "note"}  # columns of text


def plain(report: Report) -> str:
    """Return what ``print(report)`` shows."""
    if report.class_models:
        return _plain_classes(report)
    level = percent(report.confidence_level)
    blocks = [*_doubts(report.data), *_source(report.data)]
    blocks.append("\n".join(_aligned(_summary(report))))
    blocks += [f"{for_line(model.name)}: {model.verdict}" for model in report.models]
    blocks.append(f"{RECALIBRATIONS}, if these rows trained no model")
    blocks.append("\n".join(_aligned(_recalibrations(report.models, level))))
    reasons = dict.fromkeys(
        model.recalibration.reason for model in report.models if model.recalibration.reason
    )
    blocks += [f"No statement is made: {reason}" for reason in reasons]
    blocks += filter(None, [recalibration_draws(report.models)])
    if report.monitor is not None:
        blocks.append(str(report.monitor))
    if report.pairs:
        pairs, omitted = shortened(report.pairs, _ROWS_PRINTED)
        blocks.append(f"Differences in smCE, {level} confidence for all pairs together{omitted}")
        blocks.append("\n".join(_aligned(_pairs(pairs))))
    if report.groups:
        groups, omitted = shortened(report.groups, _ROWS_PRINTED)
        blocks.append(f"Sub-groups{omitted}. {groups_in_words(report)}")
        blocks.append("\n".join(_aligned(_groups(groups, report))))
    blocks += report.data.notes
    return for_terminal("\n\n".join(blocks))


def _plain_classes(report: Report) -> str:
    level = percent(report.confidence_level)
    blocks = [*_source(report.data), "\n".join(_aligned(_class_summary(report)))]
    blocks += [f"{readable(model.name)}: {model.verdict}" for model in report.class_models]
    for model in report.class_models:
        shown, omitted = worst(model.classes, _CLASSES_PRINTED)
        of = f" of {readable(model.name)}" if len(report.class_models) > 1 else ""
        blocks.append(f"Classes{of}, the worst first; {CLASS_LIMITS.format(level)}{omitted}")
        blocks.append("\n".join(_aligned(_class_table(shown))))
    if report.pairs:
        pairs, omitted = shortened(report.pairs, _ROWS_PRINTED)
        blocks.append(f"Differences in {CLASS_TWIN}, {level} confidence for all pairs{omitted}")
        blocks.append("\n".join(_aligned(_pairs(pairs))))
    blocks += [*report.data.notes, CONFIDENCE]
    return for_terminal("\n\n".join(blocks))


def classes_of_a_page(report: Report) -> int:
    """Return how many classes of each model a page has room for."""
    return max(_CLASSES_PRINTED, ROWS_OF_A_PAGE // len(report.class_models))


def worst(classes: Sequence[ClassReport], limit: int) -> tuple[Sequence[ClassReport], str]:
    """Return the first of the classes, which are the worst, and words for what is left out."""
    left = classes[limit:]
    if not left:
        return classes, ""
    total = sum(line.share for line in left)
    named = f"the other {len(left):,} have {number(total)} in all"
    return classes[:limit], f"; {named}, the JSON has every one"


def confidence_in_words(model: ClassModelReport) -> str:
    """Say how often the most probable class is true, and what that does not say."""
    if model.accuracy is None or model.mean_confidence is None:
        return CONFIDENCE
    return (
        f"The most probable class is true for {number(model.accuracy)} of the rows and has "
        f"probability {number(model.mean_confidence)} on average. {CONFIDENCE}"
    )


def _class_summary(report: Report) -> Table:
    level = percent(report.confidence_level)
    rows = [["model", "CW", "if calibrated", f"population, {level}", "at least", "at most"]]
    rows[0].append("p-value")
    for model in report.class_models:
        lower, upper = model.population_lower, model.population_upper
        population = "—"
        if lower is not None:
            end = f"at least {down(lower)}"
            population = end if upper is None else f"{down(lower)} to {up(upper)}"
        rows.append(
            [
                readable(model.name),
                number(model.value),
                number(model.noise),
                population,
                down(model.lower),
                "—" if model.upper is None else up(model.upper),
                "—" if model.pvalue is None else class_probability(model),
            ]
        )
    return rows


def _class_table(classes: Sequence[ClassReport]) -> Table:
    rows = [
        ["class", "share", "at least", "if calibrated", "smCE", "frequency", "mean probability"]
    ]
    return rows + [
        [
            readable(line.name),
            number(line.share),
            "—" if line.lower is None else down(line.lower, DIGITS),
            number(line.noise),
            number(line.smooth_ce),
            number(line.frequency),
            number(line.mean_prediction),
        ]
        for line in classes
    ]


def recalibration_draws(models: Sequence[ModelReport]) -> str:
    """Say how many replicates the limits after recalibration come from; empty if none."""
    counts = {model.recalibration.n_resamples for model in models} - {0}
    if not counts:
        return ""
    return (
        f"The limits after recalibration come from {', '.join(map(str, sorted(counts)))} resamples."
    )


def shortened(rows: Sequence[Tested], limit: int) -> tuple[list[Tested], str]:
    """Return the rows with the smallest p-values, in their order, and words for what is left out.

    Nobody reads thousands of rows; JSON has them.
    """
    if len(rows) <= limit:
        return list(rows), ""
    by_pvalue = sorted(range(len(rows)), key=lambda at: rows[at].pvalue)
    kept = [rows[at] for at in sorted(by_pvalue[:limit])]
    return kept, f"; the {limit} with the smallest p-values of {len(rows):,}, all are in the JSON"


def interval(measure: MeasureReport) -> str:
    """Return a measure's interval, or a dash where it has none."""
    if measure.lower is None or measure.upper is None:
        return "—"
    return f"{down(measure.lower)} to {up(measure.upper)}"


def rows_in_words(data: DataReport) -> str:
    """Say how many rows there are, as far as that is known, and what is taken as independent."""
    if data.n_classes is not None:
        rows = "Rows of each model" if data.n_rows is None else f"{data.n_rows:,} rows"
        return f"{rows}, {data.n_classes:,} classes, {_INDEPENDENT}."
    if data.share_of_ones is None:
        return f"Each model has rows of its own, {_INDEPENDENT}."
    if data.n_rows is None:
        return f"A summary of an unknown number of rows, {_INDEPENDENT}."
    ones = "" if data.positives is None else f", {data.positives:,} of them with label 1"
    clusters = "" if data.n_clusters is None else f"in {data.n_clusters:,} clusters that are "
    return f"{data.n_rows:,} rows{ones}, {clusters}{_INDEPENDENT}."


def _summary(report: Report) -> Table:
    level = percent(report.confidence_level)
    rows = [["model", "at least", "at most", f"population, {level}", "predicted", "observed"]]
    there = {measure.name for model in report.models for measure in model.measures}
    shown = [measure for measure in shown_in("report table") if measure.name in there]
    rows[0] += [*(measure.symbol for measure in shown), "p-value"]
    for model in report.models:
        value = {measure.name: measure.value for measure in model.measures}
        rows.append(
            [
                model.name,
                down(model.lower),
                up(model.upper),
                f"{down(model.population_lower)} to {up(model.population_upper)}",
                rate(model.mean_prediction),
                rate(model.mean_label),
                *(number(value.get(measure.name)) for measure in shown),
                probability(model.pvalue, least_of(report.n_resamples)),
            ]
        )
    return rows


def class_probability(model: ClassModelReport) -> str:
    """Return the p-value of a model of several classes."""
    return probability(model.pvalue or 0.0, least_of(model.test_resamples))


def source_in_words(data: DataReport) -> list[str]:
    """Say where the rows come from, a line for each thing that was said."""
    return [f"{title(line.name)}: {for_line(line.value)}" for line in data.source]


def _doubts(data: DataReport) -> list[str]:
    return [f"Warning: {for_line(doubt)}" for doubt in data.doubts]


def _source(data: DataReport) -> list[str]:
    return ["\n".join(source_in_words(data))] if data.source else []


def title(name: str) -> str:
    """Return a name of code as a title."""
    words = for_line(name).replace("_", " ")
    return words[:1].upper() + words[1:]


def groups_in_words(report: Report) -> str:
    """Say how intervals and p-values of sub-groups are adjusted."""
    columns = len({group.by for group in report.groups})
    count = len({(group.by, group.group) for group in report.groups})
    of = f", of {columns} columns" if columns > 1 else ""
    return (
        f"Each interval holds for its sub-group by itself, with {percent(report.confidence_level)} "
        f"confidence. p-values are adjusted for the {count:,} sub-groups of a model{of}: "
        "calibrated predictions would show this much in any of them with at most that chance."
    )


def least_group_pvalue(report: Report) -> float:
    """Return the smallest p-value that a sub-group can have."""
    return len({group.by for group in report.groups}) * least_of(report.n_resamples)


def estimate(found: EstimateReport) -> list[str]:
    """Return a clinical measure and its interval, as they stand in a table."""
    if found.value is None:
        return ["—", "—"]
    if found.lower is None or found.upper is None:
        return [short(found.value), "—"]
    if found.name == "observed_over_expected":
        value, low, high = factors(found.value, found.lower, found.upper)
        return [value, f"{low} to {high}"]
    return [short(found.value), ends(found.lower, found.upper, 3)]


def _recalibrations(models: Sequence[ModelReport], level: str) -> Table:
    """Return what recalibration would do, a line for each model."""
    shown = shown_in("recalibration")
    rows = [["model", "recalibration", f"smCE before, {level}", "smCE after"]]
    rows[0] += [measure.facts.called for measure in shown]
    for model in models:
        found = model.recalibration
        bounds = {item.name: item for item in found.bounds}
        losses = {item.name: item for item in found.losses}
        smooth = bounds.get(smooth_ce.name)
        rows.append(
            [
                model.name,
                found.family,
                "—" if smooth is None else f"at least {down(smooth.before_lower)}",
                "—" if smooth is None else f"at most {up(smooth.after_upper)}",
                *(change(losses.get(measure.name)) for measure in shown),
            ]
        )
    return rows


def change(loss: LossReport | None) -> str:
    """Return by how much recalibration changes a loss, or a dash where that is not known."""
    return "—" if loss is None or loss.change is None else signed(loss.change)


def _pairs(pairs: Sequence[PairReport]) -> Table:
    rows = [["model", "minus model", "difference", "from", "to", "p-value"]]
    return rows + [
        [
            pair.model_a,
            pair.model_b,
            signed(pair.difference),
            down(pair.lower, 4, plus=True),
            up(pair.upper, 4, plus=True),
            probability(pair.pvalue, pair.least_pvalue),
        ]
        for pair in pairs
    ]


def _groups(groups: Sequence[GroupReport], report: Report) -> Table:
    level, least = percent(report.confidence_level), least_group_pvalue(report)
    named = ["by"] if any(group.by for group in groups) else []
    names = ["model", *named, "group", "rows", "label 1", "smCE"]
    names += [f"population, {level}", "p-value", "note"]
    rows = [
        [
            group.model,
            *(group.by for _ in named),
            group.group,
            f"{group.n_rows:,}",
            f"{group.positives:,}",
            number(group.smooth_ce),
            f"{down(group.lower)} to {up(group.upper)}",
            probability(group.pvalue, least),
            group.note,
        ]
        for group in groups
    ]
    if any(group.note for group in groups):
        return [names, *rows]
    return [row[:-1] for row in (names, *rows)]


def _aligned(rows: Table) -> list[str]:
    return aligned(rows, [at for at, name in enumerate(rows[0]) if name in _LEFT])
