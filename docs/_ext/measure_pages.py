"""One page for each measure, from its docstring and its facts.

The pages are written below ``measures/`` when a build begins, with one figure each; git ignores
them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sphinx.application import Sphinx

from caldist.measures.base import Measure
from caldist.measures.registry import all_measures
from caldist.paper.claims_by_measure import CLAIMS

_FOLDER = Path(__file__).parent.parent / "measures"
_SHARPNESS = np.geomspace(1 / 8, 8, 25)
_SIZES = np.unique(np.geomspace(30, 10_000, 9).astype(int))
_PLACES = {
    "evaluate": "`evaluate`",
    "measure": "`caldist measure`",
    "groups": "`evaluate_groups`",
    "test": "`calibration_test`",
    "report": "reports",
}


def _family(sharpness: float, n: int, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    truth = rng.random(n)
    label = rng.random(n) < truth
    odds = (truth / (1 - truth)) ** sharpness
    return label.astype(int), odds / (1 + odds)


def _picture(measure: Measure[Any]) -> None:
    import matplotlib as mpl  # chosen before pyplot

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 2.7), layout="constrained")
    values = [measure(*_family(b, 4000)) for b in _SHARPNESS]
    left.plot(_SHARPNESS, values, color="#0b5fa5")
    left.axvline(1, color="0.6", linewidth=0.8)
    left.set(xscale="log", xlabel="sharpness β (1 is calibrated)", ylabel=measure.symbol)
    left.set_xticks([1 / 8, 1 / 2, 1, 2, 8], ["1/8", "1/2", "1", "2", "8"])
    left.minorticks_off()
    left.set_title("under- to over-confident, 4,000 rows", fontsize=9)
    runs = np.array([[measure(*_family(1, n, seed)) for seed in range(12)] for n in _SIZES])
    right.plot(_SIZES, runs.mean(axis=1), color="#0b5fa5")
    right.fill_between(_SIZES, runs.min(axis=1), runs.max(axis=1), color="#0b5fa5", alpha=0.2)
    right.set(xscale="log", xlabel="rows", ylabel=measure.symbol)
    right.set_title("calibrated: mean, range of 12 samples", fontsize=9)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        if min(values) >= 0 and runs.min() >= 0:
            axes.set_ylim(bottom=0)
    figure.savefig(_FOLDER / f"{measure.name}.svg", metadata={"Date": None})
    plt.close(figure)


def _facts(measure: Measure[Any]) -> list[str]:
    """Return what the object says of itself: where it is shown, and what can be had of it."""
    facts, missing = measure.facts, measure.missing_option
    called = f"measure=caldist.measures.{measure.name}" + (
        "" if missing is None else f".using({missing}=…)"
    )
    places = [words for place, words in _PLACES.items() if place in facts.shown_in]
    shown = "- **Shown** where it is asked for."
    if places:
        listed = " and ".join(filter(None, (", ".join(places[:-1]), places[-1])))
        shown = f"- **Shown** in {listed}."
    if "measure" not in facts.shown_in and missing is None:
        shown += f" From a shell: `caldist measure --measure {measure.name}`."
    bound = "a certified bound on their effect" if facts.rounding else "no bound on their effect"
    rows = "with clusters too" if measure.takes_clusters else "for independent rows"
    return [
        shown,
        f"- **Rounded predictions**: {bound}.",
        f"- **Interval** for the population: `confidence_interval(…, {called})`."
        if measure.has_interval
        else f"- **Interval** for the population: none, since {facts.no_interval}",
        f"- **Comparison** of two models: `compare(…, {called})`."
        if measure.is_comparable
        else f"- **Comparison** of two models: none; it {facts.no_comparison}",
        f"- **Test** of calibration: `calibration_test(…, {called})`, {rows}.",
        *([f"- **Proof**: `certify(…, {called})`."] if facts.certify else []),
    ]


def _properties(measure: Measure[Any]) -> list[str]:
    """Return the measure's lines in the table of properties, each as a table with its reasons."""
    lines = []
    for entry in CLAIMS[measure.name]() if measure.name in CLAIMS else ():
        lines += ["", f"**Properties of `{entry.subject.name}`**, each with its reason:", ""]
        lines += ["| property | | why |", "| --- | --- | --- |"]
        lines += [
            f"| {cell.property} | {cell.text()} | {cell.reason.replace('|', chr(92) + '|')} |"
            for cell in entry.cells()
        ]
    return lines


def _page(measure: Measure[Any]) -> str:
    return "\n".join(
        [
            f"# {measure.symbol}: `{measure.name}`",
            "",
            f"{measure.summary[0].upper()}{measure.summary[1:]}.",
            "",
            f"![Left: {measure.symbol} over the sharpness of the predictions. Right: on calibrated "
            f"samples of growing size.]({measure.name}.svg)",
            "",
            "```{eval-rst}",
            f".. autofunction:: caldist.measures.{measure.name}",
            "```",
            "",
            "## Facts",
            "",
            *_facts(measure),
            *_properties(measure),
            "",
        ]
    )


def write_pages(_: Sphinx) -> None:
    """Write the pages and figures, and an index of them."""
    _FOLDER.mkdir(exist_ok=True)
    measures = all_measures()
    for name, measure in measures.items():
        if not (_FOLDER / f"{name}.svg").exists():  # the slow part
            _picture(measure.shown)
        (_FOLDER / f"{name}.md").write_text(_page(measure), encoding="utf-8")
    rows = [
        f"| [{measure.symbol}]({name}.md) | `{name}` | {measure.summary} |"
        for name, measure in measures.items()
    ]
    index = [
        "# The measures",
        "",
        "One page each: definition, what the number means, what it estimates, its properties with "
        "reasons, its cost and a picture. See also [which measure to use](../which-measure.md) and "
        "[all properties in one table](../properties.md).",
        "",
        "| symbol | function | |",
        "| --- | --- | --- |",
        *rows,
        "",
        "```{toctree}",
        ":hidden:",
        "",
        *measures,
        "```",
        "",
    ]
    (_FOLDER / "index.md").write_text("\n".join(index), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the pages before Sphinx looks for files."""
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
