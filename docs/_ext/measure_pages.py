"""One page for each measure, from its docstring, the registry and the table of properties.

The pages are written below ``measures/`` when a build begins, with one figure each; git ignores
them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sphinx.application import Sphinx

import caldist
from caldist.measures.registry import MEASURES
from caldist.reporting.build import REPORTED

_FOLDER = Path(__file__).parent.parent / "measures"
_SHARPNESS = np.geomspace(1 / 8, 8, 25)
_SIZES = np.unique(np.geomspace(30, 10_000, 9).astype(int))

# Public functions (y_true, y_prob, …) -> number that are not in the registry of `evaluate`, since
# they are not finite or not functions of the joint distribution by default.
_OTHERS = {
    "ks_error": "KS",
    "log_loss": "log-loss",
    "normalized_cross_entropy": "NCE",
    "debiased_ece": "debiased ECE",
    "sweep_ece": "sweep ECE",
    "skce": "SKCE",
    "weighted_ce": "wCE",
}


def _family(sharpness: float, n: int, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    truth = rng.random(n)
    label = rng.random(n) < truth
    odds = (truth / (1 - truth)) ** sharpness
    return label.astype(int), odds / (1 + odds)


def _call(name: str) -> Callable[[Any, Any], float]:
    function = getattr(caldist, name)
    if name == "weighted_ce":
        from caldist.weights import polynomials  # for this one

        return lambda y, p: float(function(y, p, functions=polynomials(3)))
    return lambda y, p: float(function(y, p))


def _picture(name: str, symbol: str) -> None:
    import matplotlib as mpl  # chosen before pyplot

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    measure = _call(name)
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 2.7), layout="constrained")
    values = [measure(*_family(b, 4000)) for b in _SHARPNESS]
    left.plot(_SHARPNESS, values, color="#0b5fa5")
    left.axvline(1, color="0.6", linewidth=0.8)
    left.set(xscale="log", xlabel="sharpness β (1 is calibrated)", ylabel=symbol)
    left.set_xticks([1 / 8, 1 / 2, 1, 2, 8], ["1/8", "1/2", "1", "2", "8"])
    left.minorticks_off()
    left.set_title("under- to over-confident, 4,000 rows", fontsize=9)
    runs = np.array([[measure(*_family(1, n, seed)) for seed in range(12)] for n in _SIZES])
    right.plot(_SIZES, runs.mean(axis=1), color="#0b5fa5")
    right.fill_between(_SIZES, runs.min(axis=1), runs.max(axis=1), color="#0b5fa5", alpha=0.2)
    right.set(xscale="log", xlabel="rows", ylabel=symbol)
    right.set_title("calibrated: mean, range of 12 samples", fontsize=9)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        if min(values) >= 0 and runs.min() >= 0:
            axes.set_ylim(bottom=0)
    figure.savefig(_FOLDER / f"{name}.svg", metadata={"Date": None})
    plt.close(figure)


def _facts(name: str) -> list[str]:
    """Return what the registry and the table of properties know."""
    lines = []
    known = MEASURES.get(name)
    if known is not None:
        bound = "a certified bound" if known.rounding else "no bound, since none exists"
        places = "`evaluate`, `caldist measure` and reports" if name in REPORTED else "`evaluate`"
        lines += [f"In {places}. Rounded predictions: {bound}."]
        if name not in REPORTED:
            lines[-1] += f" From a shell: `caldist measure --measures {name}`."
    table = caldist.properties()
    for row in table.measures:
        if row.removeprefix("1 - ").split(" ")[0] == name:
            cells = [cell for cell in table.rows if cell.measure == row]
            lines += ["", f"**Properties of `{row}`**, each with its reason:", ""]
            lines += ["| property | | why |", "| --- | --- | --- |"]
            lines += [
                f"| {cell.property} | {cell.text()} | {cell.reason.replace('|', chr(92) + '|')} |"
                for cell in cells
            ]
    return lines


def _page(name: str, symbol: str) -> str:
    return "\n".join(
        [
            f"# {symbol}: `{name}`",
            "",
            f"![Left: {symbol} over the sharpness of the predictions. Right: on calibrated samples "
            f"of growing size.]({name}.svg)",
            "",
            "```{eval-rst}",
            f".. autofunction:: caldist.{name}",
            "   :no-index:",
            "```",
            "",
            "## Facts",
            "",
            *_facts(name),
            "",
        ]
    )


def write_pages(_: Sphinx) -> None:
    """Write the pages and figures, and an index of them."""
    _FOLDER.mkdir(exist_ok=True)
    symbols = {name: measure.symbol for name, measure in MEASURES.items()} | _OTHERS
    for name, symbol in symbols.items():
        if not (_FOLDER / f"{name}.svg").exists():  # the slow part
            _picture(name, symbol)
        (_FOLDER / f"{name}.md").write_text(_page(name, symbol), encoding="utf-8")
    rows = [f"| [{symbol}]({name}.md) | `{name}` |" for name, symbol in symbols.items()]
    index = [
        "# The measures",
        "",
        "One page each: definition, what the number means, what it estimates, its properties with "
        "reasons, its cost and a picture. See also [which measure to use](../which-measure.md) and "
        "[all properties in one table](../properties.md).",
        "",
        "| symbol | function |",
        "| --- | --- |",
        *rows,
        "",
        "```{toctree}",
        ":hidden:",
        "",
        *symbols,
        "```",
        "",
    ]
    (_FOLDER / "index.md").write_text("\n".join(index), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the pages before Sphinx looks for files."""
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
