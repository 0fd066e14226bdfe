"""The page and the figure on recalibration."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from caldist.paper.style import figure, render, style
from caldist.recalibration._selection import FEW
from studies import recalibration
from studies.pages import FAIL, percent, table
from studies.runs import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["misses_pass", "recalibration_figure", "recalibration_page"]

_NOMINAL = (1 - recalibration.LEVEL) / 2
_JUDGED = (
    "smooth_ce, after misses", "smooth_ce, before misses", "lower_distance, after misses",
    "lower_distance, before misses", "distance, after misses",
)  # fmt: skip
_SHARE = 0.65  # of the bound from rows held out
_MEAN = 0.06  # the mean bound at 800 rows
_PAGE = """\
# Recalibration: coverage, bounds and quality

{passed} of {cells} cells hold their level: at most {most:.0f}% of the statements miss on either
side, at {nominal:.0f}% nominal, within two of the share's standard errors. Over all laws together,
where that error is small, nothing is allowed for.

![Share of statements that miss, by family and law](recalibration.svg)

The statement at {level:.0f}%: the smooth calibration error was at least `lower` before, and is at
most `upper` after, each wrong in {nominal:.0f}% of the cases. The map is fitted to the same rows,
and its table is what is judged, on the population of the law (a discretisation with 20,000 atoms).

- Data sets: {plan.data_sets} for n = {rows}; {plan.bound_sets} for the bound, {plan.quality_sets}
  for the quality, {plan.real_splits} splits of each real set, {plan.few_sets} for few rows.
  {plan.n_resamples} replicates, seed {plan.seed}. The standard error of a share s over N data sets
  is √(s(1 − s)/N).
- Data sets with fewer than ten rows of a label get no statement and do not count. Cells where that
  is half of them or more are not judged.
- The distance to calibration lies above the lower distance, so misses of its bound are counted by
  that: too few, if anything.
- "loss" counts how often the interval for the change of the log loss does not hold the change that
  the map makes in the population. The interval is about the whole procedure on four fifths of the
  rows, so this is shown and not judged.
- Run again: `{command}`. The same seed gives the same numbers, whatever the number of processes.
  Peers take part where they are installed.

## Laws

"""
_BOUND = """\
## The bound beside that of rows held out

The mean upper limit of the smooth calibration error after, at {level:.0f}% and n = {rows}: of
`recalibrate`, and of the same family fitted to one half of the rows and judged on the other by
`confidence_interval`, both with 999 replicates. Asked for is at most {share} of the latter, and
{mean} in the mean over laws.

"""
_QUALITY = """\
## Quality of the maps

What a map loses on the population against the frequencies themselves, as a ratio to the best method
of the law: geometric mean over laws and, in brackets, the worst. On laws that are calibrated to do
nothing is the best, so they stand apart. Where others win is shown as it is.

"""
_FEW = """\
## Few rows

Below {few} rows `auto` takes the sigmoid and selects nothing; from there on it selects. Here both
are made to work on either side, on the same data sets. The log loss ({unit}), of laws above the
least, the mean over laws or over pairs of a real set and a model; "gain" is by how much the sigmoid
is better, with its standard error from the data sets, and how many laws or pairs gain. The limit
was 200 at first; this table moved it to {few}. {verdict}

"""


def _find(rows: Sequence[Row], /, **wanted: str) -> list[Row]:
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def _judged(rows: Sequence[Row], plan: recalibration.Plan) -> list[Row]:
    """Return the shares of misses that count: of smCE and ldCE, with enough statements."""
    sets = dict(zip(map(str, recalibration.ROWS), plan.data_sets, strict=True))
    return [
        row
        for row in _find(rows, kind="coverage")
        if row["quantity"].endswith(("after misses", "before misses"))
        and int(row["data_sets"]) > sets[row["rows"]] / 2
    ]


def misses_pass(row: Row) -> bool:
    """Whether statements miss at most two points more often than they say, within two errors."""
    share, most = float(row["mean"]), _NOMINAL + recalibration.TOLERANCE
    return share <= most + 2 * math.sqrt(share * (1 - share) / int(row["data_sets"])) + 1e-9


def recalibration_page(rows: Sequence[Row], plan: recalibration.Plan, command: str) -> str:
    """Return the page on recalibration."""
    judged = _judged(rows, plan)
    cells = {row["cell"] for row in judged}
    failed = {row["cell"] for row in judged if not misses_pass(row)}
    lines = [
        _PAGE.format(
            passed=len(cells - failed), cells=len(cells), plan=plan, command=command,
            rows=", ".join(f"{n:,}" for n in recalibration.ROWS), level=100 * recalibration.LEVEL,
            nominal=100 * _NOMINAL, most=100 * (_NOMINAL + recalibration.TOLERANCE),
        ),
        *table(
            ("law", "what it is"),
            [(law.name, law.text) for law in recalibration.RECALIBRATED.values()],
        ),
        "## Misses", "", "In percent of the statements. First of all laws together.", "",
        *_together(judged), "Of each.", "", *_misses(rows, judged),
        *_bounds(rows),
    ]  # fmt: skip
    lines.append(_QUALITY)
    for quantity in ("log loss", "Brier"):
        lines += [f"### {quantity}", "", *_ratios(rows, quantity)]
    lines += ["### smCE after, mean over laws (×1000)", "", *_smooth(rows)]
    lines += ["## Real data", "", *_real(rows), *_few(rows)]
    return "\n".join(lines).rstrip() + "\n"


def _together(judged: Sequence[Row]) -> list[str]:
    """Return shares over the data sets of all laws, which are judged as they are."""
    listed = []
    for family in recalibration.FAMILIES:
        for n in map(str, recalibration.ROWS):
            own = _find(judged, method=family, rows=n)
            line, worst = [family, n], 0.0
            for quantity in _JUDGED:
                found = _find(own, quantity=quantity)
                sets = sum(int(row["data_sets"]) for row in found)
                share = sum(int(row["data_sets"]) * float(row["mean"]) for row in found)
                line.append(percent(share / sets) if sets else "")
                worst = max(worst, share / max(1, sets))
            good = worst <= _NOMINAL + recalibration.TOLERANCE + 1e-9
            listed.append([*line, "pass" if good else FAIL])
    head = ("family", "n", "smCE after", "before", "ldCE after", "before", "distance", "")
    return table(head, listed)


def _misses(rows: Sequence[Row], judged: Sequence[Row]) -> list[str]:
    others = ("log_loss, change misses", "smooth_ce, truth", "smooth_ce, bound", "distance, bound")
    counted = {row["cell"] for row in judged}
    bad = {row["cell"] for row in judged if not misses_pass(row)}
    listed = []
    for cell in dict.fromkeys(row["cell"] for row in _find(rows, kind="coverage")):
        own = {row["quantity"]: row for row in rows if row["cell"] == cell}
        first = next(iter(own.values()))
        line = [first["law"], first["rows"], first["method"], first["data_sets"]]
        line += [percent(own[q]["mean"]) if q in own else "" for q in (*_JUDGED, others[0])]
        line += [f"{float(own[q]['mean']):.4f}" if q in own else "" for q in others[1:]]
        proved = own.get("improvement proved")
        line.append("" if proved is None else percent(proved["mean"]))
        line.append(FAIL if cell in bad else "pass" if cell in counted else "few")
        listed.append(line)
    listed.sort(key=lambda line: (list(recalibration.RECALIBRATED).index(line[0]), int(line[1])))
    head = ("law", "n", "family", "sets", "smCE after", "before", "ldCE after", "before")
    more = ("distance", "loss", "smCE", "its bound", "bound of the distance", "proved better", "")
    return table((*head, *more), listed)


def _bounds(rows: Sequence[Row]) -> list[str]:
    lines = [
        _BOUND.format(
            level=100 * recalibration.LEVEL, rows=recalibration.BOUND_ROWS, share=_SHARE, mean=_MEAN
        )
    ]
    listed = []
    for family in recalibration.FAMILIES:
        pairs = [
            [
                float(_find(rows, kind="bound", law=law, method=family, quantity=q)[0]["mean"])
                for q in ("all rows", "half held out")
            ]
            for law in recalibration.BALANCED
        ]
        ours, theirs = np.array(pairs).T
        ratio = ours / theirs
        good = ratio.mean() <= _SHARE and ours.mean() <= _MEAN
        listed.append([
            family, f"{ours.mean():.4f}", f"{theirs.mean():.4f}", f"{ratio.mean():.2f}",
            f"{ratio.max():.2f}", "pass" if good else FAIL,
        ])  # fmt: skip
    head = ("family", "bound", "half held out", "ratio", "largest ratio", "")
    return lines + table(head, listed)


def _methods(rows: Sequence[Row]) -> list[str]:
    there = {row["method"] for row in rows}
    return [name for name in recalibration.FITTERS if name in there]


def _ratios(rows: Sequence[Row], quantity: str) -> list[str]:
    found = _find(rows, kind="quality", quantity=quantity)
    laws = list(dict.fromkeys(row["law"] for row in found))
    listed = []
    for method in _methods(found):
        line = [method]
        for n in map(str, recalibration.ROWS):
            ratios, calibrated = [], []
            for law in laws:
                here = {row["method"]: float(row["mean"]) for row in _find(found, law=law, rows=n)}
                if method not in here or math.isnan(here[method]):
                    continue
                if recalibration.RECALIBRATED[law].calibrated:
                    calibrated.append(1000 * here[method])
                else:
                    ratios.append(max(here[method], 1e-9) / max(min(here.values()), 1e-9))
            mean = math.exp(np.log(ratios).mean()) if ratios else math.nan
            worst = max(ratios, default=math.nan)
            line += [f"{mean:.2f} ({worst:.1f})"]
            line.append(f"{np.mean(calibrated):.2f}" if calibrated else "")
        listed.append(line)
    head = ["method"]
    for n in recalibration.ROWS:
        head += [f"n = {n:,}", "calibrated, ×1000"]
    return table(head, listed)


def _smooth(rows: Sequence[Row]) -> list[str]:
    found = _find(rows, kind="quality", quantity="smCE")
    listed = []
    for method in _methods(found):
        line = [method]
        for n in map(str, recalibration.ROWS):
            values = [float(row["mean"]) for row in _find(found, method=method, rows=n)]
            line.append(f"{1000 * np.nanmean(values):.1f}" if values else "")
        listed.append(line)
    return table(("method", *(f"n = {n:,}" for n in recalibration.ROWS)), listed)


def _real(rows: Sequence[Row]) -> list[str]:
    found = _find(rows, kind="real")
    sets = list(dict.fromkeys(row["law"] for row in found))
    listed = []
    for method in _methods(found):
        line = [method]
        for quantity in ("log loss", "Brier", "smCE"):
            ranks, excess = [], []
            for name in sets:
                here = {
                    row["method"]: float(row["mean"])
                    for row in _find(found, law=name, quantity=quantity)
                }
                if method in here:
                    ranks.append(sum(value < here[method] for value in here.values()) + 1)
                    excess.append(1000 * (here[method] - min(here.values())))
            if ranks:
                line += [f"{np.mean(ranks):.1f}", f"{np.mean(excess):.1f}", f"{max(excess):.0f}"]
            else:
                line += [""] * 3
        failed = sum(
            int(row["data_sets"]) for row in _find(found, method=method, quantity="failures")
        )
        listed.append([*line, str(failed)])
    text = (
        f"{len(sets)} pairs of a data set of scikit-learn and a model: two fifths train it, two "
        "fit the map, one judges. The mean rank over pairs, and the mean and the largest excess "
        "over the best method (×1000), of the log loss, the Brier score and smCE on held-out rows; "
        "and how often a library failed. The pairs share a few data sets: they are no independent "
        "trials."
    )
    head = ["method"]
    for quantity in ("log loss", "Brier", "smCE"):
        head += [f"rank, {quantity}", "mean excess", "worst"]
    every = []
    for name in sets:
        own = {r["method"]: float(r["mean"]) for r in _find(found, law=name, quantity="log loss")}
        size = _find(found, law=name)[0]["rows"]
        every.append([name, size, *(f"{own[m]:.4f}" if m in own else "" for m in _methods(found))])
    return [
        text, "", *table((*head, "failures"), listed),
        "The log loss on each, with the number of rows that fit the map.", "",
        *table(("set: model", "rows", *_methods(found)), every),
    ]  # fmt: skip


def _few(rows: Sequence[Row]) -> list[str]:
    listed, gains = [], []
    for kind, name in (("few", "laws"), ("few real", "real sets")):
        for n in map(str, recalibration.FEW_ROWS):
            own = [row for row in _find(rows, kind=kind, rows=n) if int(row["data_sets"])]
            mean = {
                key: 1000 * np.array([float(row["mean"]) for row in _find(own, method=key)])
                for key in (*recalibration.RULES, "gain")
            }
            gain = mean["gain"]
            if not gain.size:
                continue
            errors = [1000 * float(row["error"]) for row in _find(own, method="gain")]
            if int(n) < FEW:
                gains.append(float(gain.mean()))
            listed.append([
                name, n, *(f"{mean[key].mean():.1f}" for key in recalibration.RULES),
                f"{gain.mean():.1f} ± {math.hypot(*errors) / gain.size:.1f}",
                f"{(gain > 0).sum()} of {gain.size}", f"{gain.min():.0f}", f"{gain.max():.0f}",
            ])  # fmt: skip
    verdict = (
        f"In the mean over laws and over real sets the sigmoid is better at every number of rows "
        f"below {FEW}, so the rule is confirmed."
        if min(gains, default=-1.0) > 0
        else f"The sigmoid is not better everywhere below {FEW}: the rule is not confirmed. {FAIL}"
    )
    head = ("of", "n", *recalibration.RULES, "gain", "that gain", "least gain", "largest")
    return [_FEW.format(unit="×1000", few=FEW, verdict=verdict), *table(head, listed)]


def recalibration_figure(rows: Sequence[Row]) -> bytes:
    """Draw for each family and law how often statements miss, as SVG."""
    with style():
        drawn = figure(7.2, 4.2)
        panels = np.ravel(drawn.subplots(1, len(recalibration.FAMILIES), sharex=True, sharey=True))
        for axes, family in zip(panels, recalibration.FAMILIES, strict=True):
            _draw(axes, _find(rows, kind="coverage", method=family))
            axes.set_title(family)
            axes.set_xlabel("misses, %")
        panels[0].set_yticks(
            range(len(recalibration.RECALIBRATED)), list(recalibration.RECALIBRATED)
        )
        panels[0].set_ylim(len(recalibration.RECALIBRATED) - 0.4, -0.6)
        handles, names = panels[0].get_legend_handles_labels()
        drawn.legend(handles, names, loc="outside lower center", ncols=3, frameon=False)
        return render(drawn)[0]


def _draw(axes: Axes, rows: Sequence[Row]) -> None:
    order = list(recalibration.RECALIBRATED)
    kinds = {
        "after": {"mfc": "black", "mec": "black"},
        "before": {"mfc": "white", "mec": "#8a8a8a"},
    }
    for when, colours in kinds.items():
        for at, (n, marker) in enumerate(zip(recalibration.ROWS, ("o", "s", "^"), strict=True)):
            points = [
                (100 * float(row["mean"]), order.index(row["law"]) + 0.22 * (at - 1))
                for row in rows
                if row["quantity"] == f"smooth_ce, {when} misses" and int(row["rows"]) == n
            ]
            name = f"{when}, n = {n:,}"
            axes.plot(
                *np.array(points).reshape(-1, 2).T, marker, ms=4, mew=0.8, label=name, **colours
            )
    axes.axvline(100 * _NOMINAL, color="black", lw=0.6, ls=(0, (4, 2)), zorder=0)
    axes.set_xlim(-0.5, 12)
