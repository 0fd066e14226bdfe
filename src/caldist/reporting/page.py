"""A report as one self-contained HTML page: no network, light and dark, phone and print."""

from __future__ import annotations

from base64 import b64encode
from importlib.resources import files

from caldist._util.optional import require
from caldist.reporting.model import Report
from caldist.reporting.text import ROWS_OF_A_PAGE, interval, number, rows_in_words, shortened
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
        "interval": interval, "number": number,
    }  # fmt: skip
    figures = _drawn(report)
    pairs, pairs_omitted = shortened(report.pairs, ROWS_OF_A_PAGE)
    groups, groups_omitted = shortened(report.groups, ROWS_OF_A_PAGE)
    scale = max((model.population_upper for model in report.models), default=1.0)
    return str(
        environment.from_string(source).render(
            report=report,
            rows=rows_in_words(report.data),
            figures=figures,
            undrawn=len(report.figures) - len(figures),
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


def _drawn(report: Report) -> list[dict[str, str]]:
    """Draw figures as long as the page stays small; those of all models come first."""
    figures: list[dict[str, str]] = []
    size = 0
    for figure in report.figures:
        source = _as_data(figure.svg())
        size += len(source)
        if size > _FIGURES:
            break
        figures.append({"caption": figure.caption, "alt": figure.alt, "source": source})
    return figures


def _as_data(svg: str) -> str:
    return "data:image/svg+xml;base64," + b64encode(svg.encode("utf-8")).decode("ascii")
