"""A report as one self-contained HTML page: no network, light and dark, phone and print."""

from __future__ import annotations

from base64 import b64encode
from importlib.resources import files

from caldist._util.optional import require
from caldist.reporting.model import Report
from caldist.reporting.text import (
    ROWS_OF_A_PAGE,
    change,
    interval,
    number,
    rows_in_words,
    shortened,
)
from caldist.reporting.verdict import down, percent, probability, up

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
        "The chance that calibrated predictions would give any sub-group evidence this strong."
    ),
    "repair": (
        "Limits with the stated confidence for the population, for the predictions as they are and "
        "as the map makes them. The map was fitted to the same rows: the bound holds for all "
        "monotone maps at once. Rows that trained the model would void it."
    ),
    "loss": (
        "Each row is mapped by what the other rows made. A negative change means that the repair "
        "helps; the interval is for the population's change, with the stated confidence."
    ),
    "gap": "Mean label minus mean prediction of the rows in this range.",
}


def page(report: Report) -> str:
    """Render the page. Everything that comes from the data is escaped."""
    jinja2 = require("jinja2", extra="report")
    source = files("caldist.reporting").joinpath("report.html.jinja").read_text(encoding="utf-8")
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {
        "down": down, "up": up, "percent": percent, "probability": probability,
        "interval": interval, "number": number, "change": change, "title": _title,
    }  # fmt: skip
    drawn = _drawn(report)
    figures = [figure for figure in drawn if figure["repair_of"] is None]
    pairs, pairs_omitted = shortened(report.pairs, ROWS_OF_A_PAGE)
    groups, groups_omitted = shortened(report.groups, ROWS_OF_A_PAGE)
    scale = max((model.population_upper for model in report.models), default=1.0)
    return str(
        environment.from_string(source).render(
            report=report,
            rows=rows_in_words(report.data),
            figures=figures,
            maps={figure["repair_of"]: figure for figure in drawn},
            undrawn=len(report.figures) - len(drawn),
            repaired=[model for model in report.models if model.repair is not None],
            pairs=pairs,
            pairs_omitted=pairs_omitted,
            groups=groups,
            groups_omitted=groups_omitted,
            noted=any(group.note for group in groups),
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


def _title(name: str) -> str:
    return name.replace("_", " ").capitalize()


def _drawn(report: Report) -> list[dict[str, str | None]]:
    """Draw figures as long as the page stays small; those of all models come first."""
    figures: list[dict[str, str | None]] = []
    size = 0
    for figure in report.figures:
        source = _as_data(figure.svg())
        size += len(source)
        if size > _FIGURES:
            break
        words = {"caption": figure.caption, "alt": figure.alt, "source": source}
        figures.append({**words, "repair_of": figure.repair_of})
    return figures


def _as_data(svg: str) -> str:
    return "data:image/svg+xml;base64," + b64encode(svg.encode("utf-8")).decode("ascii")
