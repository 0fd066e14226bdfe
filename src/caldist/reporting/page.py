"""A report as one self-contained HTML page: no network, light and dark, phone and print."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from caldist._util.escaping import for_terminal
from caldist._util.numbers import (
    down,
    least_of,
    number,
    percent,
    probability,
    rate,
    short,
    signed,
    signed_ends,
    up,
)
from caldist._util.optional import require
from caldist._util.version import __version__
from caldist.clinical.calibration_summary import NAMES
from caldist.clinical.rates import Rates, factors
from caldist.reporting.class_verdict import BLIND
from caldist.reporting.figures import Figure
from caldist.reporting.model import ClassModelReport, MonitorReport, Report
from caldist.reporting.text import (
    CLASS_LIMITS,
    CLASS_TWIN,
    CLINICAL,
    RECALIBRATIONS,
    ROWS_OF_A_PAGE,
    change,
    class_probability,
    classes_of_a_page,
    confidence_in_words,
    estimate,
    groups_in_words,
    interval,
    least_group_pvalue,
    recalibration_draws,
    rows_in_words,
    shortened,
    source_in_words,
    worst,
)

_FIGURES = 700_000  # letters that figures may take of a page of at most a megabyte

_TERMS = {
    "distance": (
        "The distance to calibration is the least average change of the predictions that makes "
        "them perfectly calibrated. These rows prove the range, whatever lies behind them."
    ),
    "confidence": (
        "With the stated confidence the distance to calibration in the population the rows come "
        "from lies in this range."
    ),
    "pvalue": (
        "How often labels drawn from the predictions themselves would look at least this far from "
        "calibrated. Exact in finite samples."
    ),
    "clustered": (
        "How often chance would look at least this far from calibrated: the residuals of whole "
        "clusters change their sign at random. Right for many clusters."
    ),
    "difference": (
        "smCE of the first model minus smCE of the second in the population; the confidence holds "
        "for all pairs together."
    ),
    "adjusted": (
        "The chance that calibrated predictions would give any sub-group of the model evidence "
        "this strong."
    ),
    "factor": (
        "The frequency of label 1 over the mean prediction: above 1 risks are predicted too low. "
        "The interval is for the population and respects weights and clusters."
    ),
    "clinical": (
        "Intercept 0, slope 1 and observed over expected 1 do not mean calibrated: errors in "
        "opposite directions cancel. ICI, E50, E90 and Emax are mean, median, 90% quantile and "
        "maximum of the distance between a smooth curve (loess) and the predictions. Each interval "
        "holds by itself."
    ),
    "benefit": (
        "Net benefit counts true positives per row, less false positives at the price that the "
        "threshold sets. A model is of use where its curve is above those of treating all and none."
    ),
    "recalibration": (
        "Limits with the stated confidence for the population, for the predictions as they are and "
        "as the map makes them. The map was fitted to the same rows: the bound holds for all "
        "monotone maps at once. Rows that trained the model would void it."
    ),
    "loss": (
        "Each row is mapped by what the other rows made. A negative change means that the "
        "recalibration helps; the interval is for the population's change, with the stated "
        "confidence."
    ),
    "gap": "Mean label minus mean prediction of the rows in this range.",
}

_CLASSES = 10  # classes whose numbers a page shows unfolded
_CLASS_TERMS = {
    "value": (
        "CW, the classwise distance: half the sum of the lower distances of each class against the "
        "rest. At least this share of each row's probability mass has to move, on average, before "
        "the predictions of these rows are calibrated."
    ),
    "noise": (
        "What the classwise distance would be on average, on as many rows, if the predictions were "
        "perfectly calibrated. A value near it says nothing against the model."
    ),
    "distance": (
        "The least share of probability mass, on average, whose move makes the predictions of "
        "these rows perfectly calibrated. Both ends are proved: the lower one by duals of each "
        "class, the upper one by an explicit coupling. The upper end speaks of these rows only."
    ),
    "confidence": (
        "With the stated confidence the distance to calibration in the population the rows come "
        "from lies in this range. With many classes the upper end is weak, and no method can do "
        "much better."
    ),
    "pvalue": _TERMS["pvalue"],
    "share": (
        "Half the lower distance of the class against the rest. The shares add up to the classwise "
        "distance."
    ),
    "lower": (
        "The lower limit of the population's share, with the report's confidence for all classes "
        "of the model together."
    ),
    "difference": (
        "CWs of the first model minus CWs of the second in the population; the confidence holds "
        "for all pairs together."
    ),
}

_STEPS = 30  # of a monitor that a page shows
_MONITOR_TERMS = {
    "pvalue": (
        "One over the largest e-value so far. It may be looked at after every batch: the "
        "probability that it ever falls below a level is at most that level, as long as nothing "
        "is wrong."
    ),
    "distance": (
        "The least average change of the predictions that makes them calibrated, on all rows so "
        "far. With the confidence of the monitor the lower end is below the mean distance of the "
        "batches at every look; the upper end is above the distance only if rows are independent "
        "and nothing changed since the start."
    ),
    "onset": (
        "The batch since which the evidence was largest when the alarm began, and which way "
        "predictions err now, as the last panel of the figure shows. Both are estimates, to be "
        "read after an alarm, and have no guarantee."
    ),
    "groups": (
        "At fault are those that e-BH finds: in the mean at most the false alarm rate of the found "
        "ones are wrong."
    ),
}
_LIMITS = (
    (
        "It is valid if rows enter at a fixed age, whatever their label. Where positives are known "
        "first and counted first, every monitor alarms."
    ),
    (
        "Rows of a batch are taken for independent given the past, unless the monitor was made for "
        "batches that share a shock."
    ),
    (
        "The guarantee is for the tolerance, the rate and the sub-groups that were chosen before "
        "the first batch. Choosing again after a look is a new monitor."
    ),
    "After an alarm the e-value only says more of the same. Reset it after a recalibration.",
)


def page(report: Report) -> str:
    """Render the page. Everything that comes from the data is escaped."""
    if report.class_models:
        return _class_page(report)
    drawn = _drawn(report.figures)
    plain = [one for one in drawn if one["recalibration_of"] is None and not one["clinical"]]
    pairs, pairs_omitted = shortened(report.pairs, ROWS_OF_A_PAGE)
    groups, groups_omitted = shortened(report.groups, ROWS_OF_A_PAGE)
    scale = max((model.population_upper for model in report.models), default=1.0)
    return str(
        _template("report.html.jinja").render(
            report=report,
            **_of_monitor(report.monitor),
            rows=rows_in_words(report.data),
            origin=source_in_words(report.data),
            figures=plain,
            decisions=[one for one in drawn if one["clinical"]],
            clinical=CLINICAL,
            estimate_names=NAMES,
            sections=_sections(report, figures=bool(plain)),
            maps={figure["recalibration_of"]: figure for figure in drawn},
            undrawn=len(report.figures) - len(drawn),
            recalibration_draws=recalibration_draws(report.models),
            pairs=pairs,
            pairs_omitted=pairs_omitted,
            groups=groups,
            groups_omitted=groups_omitted,
            groups_said=groups_in_words(report),
            named=any(group.by for group in groups),
            least=least_of(report.n_resamples),
            least_group=least_group_pvalue(report),
            definitions={
                measure.symbol: measure.meaning
                for model in report.models[:1]
                for measure in model.measures
            },
            terms=_TERMS
            | {"pvalue": _TERMS["pvalue" if report.data.n_clusters is None else "clustered"]},
            scale=scale or 1.0,
        )
    )


def _sections(report: Report, *, figures: bool) -> list[tuple[str, str]]:
    """Return the anchor and the title of each section that the page has."""
    several = len(report.models) > 1
    listed = (
        (several, "overview", "Overview"),
        (True, "verdict", "Verdict"),
        (figures, "figures", "Figures"),
        (report.monitor is not None, "over-time", "Over time"),
        (True, "recalibration", RECALIBRATIONS),
        (bool(report.pairs), "compared", "Models compared"),
        (bool(report.groups), "groups", "Sub-groups"),
        (True, "measures", "All measures"),
        (True, "clinical", CLINICAL),
        (True, "data", "Data"),
        (True, "meaning", "What the numbers mean"),
        (True, "computed", "How it was computed"),
    )
    return [(anchor, words) for there, anchor, words in listed if there]


def _class_sections(report: Report, *, figures: bool) -> list[tuple[str, str]]:
    """Return the anchor and the title of each section that the page of several classes has."""
    listed = (
        (len(report.class_models) > 1, "overview", "Overview"),
        (True, "verdict", "Verdict"),
        (figures, "figures", "Figures"),
        (True, "classes", "Classes"),
        (bool(report.pairs), "compared", "Models compared"),
        (True, "measures", "Measures and tests"),
        (True, "data", "Data"),
        (True, "meaning", "What the numbers mean"),
        (True, "computed", "How it was computed"),
    )
    return [(anchor, words) for there, anchor, words in listed if there]


def _ratio(rates: Rates) -> str:
    """Return observed over predicted, as it stands in a table."""
    ratio = rates.ratio
    if ratio.value is None:
        return "—"
    of = "" if rates.label == 1 else " (of label 0)"
    if ratio.note:
        return factors(ratio.value)[0] + of
    value, low, high = factors(ratio.value, ratio.lower, ratio.upper)
    return f"{value} ({low} to {high}){of}"


def _population(model: ClassModelReport) -> str:
    """Return what is known of the population's distance of several classes, for a table."""
    if model.population_lower is None:
        return "—"
    lower = down(model.population_lower)
    if model.population_upper is None:
        return f"at least {lower}"
    return f"{lower} to {up(model.population_upper)}"


def _class_page(report: Report) -> str:
    figures = _drawn(report.figures)
    pairs, pairs_omitted = shortened(report.pairs, ROWS_OF_A_PAGE)
    many = classes_of_a_page(report)
    ends = [
        end
        for model in report.class_models
        for end in (model.population_upper, model.upper, model.value, model.noise)
        if end is not None
    ]
    return str(
        _template("class_report.html.jinja").render(
            report=report,
            rows=rows_in_words(report.data),
            origin=source_in_words(report.data),
            figures=figures,
            sections=_class_sections(report, figures=bool(figures)),
            undrawn=len(report.figures) - len(figures),
            classes={model.name: worst(model.classes, many) for model in report.class_models},
            first=_CLASSES,
            limits=CLASS_LIMITS.format(percent(report.confidence_level)),
            pairs=pairs,
            pairs_omitted=pairs_omitted,
            twin=CLASS_TWIN,
            blind=BLIND,
            terms=_CLASS_TERMS,
            scale=max(ends) or 1.0,
        )
    )


def monitor_page(monitor: MonitorReport) -> str:
    """Render a page about a monitor alone. Everything that comes from the data is escaped."""
    template = _template("monitor.html.jinja")
    return str(template.render(**_of_monitor(monitor), limits=_LIMITS, version=__version__))


def _template(name: str) -> Any:
    """Return a template, which escapes whatever is put into it."""
    jinja2 = require("jinja2", extra="report")
    folder = files("caldist.reporting")
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(
            lambda part: folder.joinpath(part).read_text(encoding="utf-8")
        ),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_allowed,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "down": down, "up": up, "percent": percent, "probability": probability,
        "confidence_in_words": confidence_in_words, "interval": interval, "number": number,
        "change": change, "estimate": estimate, "rate": rate, "short": short, "signed": signed,
        "signed_ends": signed_ends,
        "class_probability": class_probability, "ratio": _ratio, "least_of": least_of,
        "title": _title, "population": _population,
    }  # fmt: skip
    return environment.get_template(name)


def _allowed(value: Any) -> Any:
    """Return what HTML allows of a text from the data; jinja2 escapes the rest."""
    return for_terminal(value) if type(value) is str else value


def _of_monitor(monitor: MonitorReport | None) -> dict[str, Any]:
    """Return what the section about a monitor needs."""
    if monitor is None:
        return {"monitor": None}
    at_fault = [group for group in monitor.groups if group.alarm]
    others = [group for group in monitor.groups if not group.alarm]
    return {
        "monitor": monitor,
        "monitor_figures": _drawn(monitor.figures),
        "monitor_steps": monitor.steps[-_STEPS:][::-1],
        "monitor_groups": (at_fault + others)[:ROWS_OF_A_PAGE],
        "monitor_terms": _MONITOR_TERMS,
    }


def _title(name: str) -> str:
    return name.replace("_", " ").capitalize()


def _drawn(wanted: Sequence[Figure]) -> list[dict[str, Any]]:
    """Draw figures as long as the page stays small; those of all models come first."""
    figures: list[dict[str, Any]] = []
    size = 0
    for figure in wanted:
        source = _as_data(figure.svg())
        size += len(source)
        if size > _FIGURES:
            break
        figures.append(
            {
                "caption": figure.caption,
                "alt": figure.alt,
                "source": source,
                "recalibration_of": figure.recalibration_of,
                "clinical": figure.clinical,
            }
        )
    return figures


def _as_data(svg: str) -> str:
    return "data:image/svg+xml;base64," + b64encode(svg.encode("utf-8")).decode("ascii")
