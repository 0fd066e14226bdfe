"""The page and the figure on penalties in training."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from caldist.paper.style import figure, render, style
from studies import training
from studies.pages import table
from studies.runs import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Change", "Results", "training_figure", "training_page"]

NOT_FOUND = "Not found in this run: "
_NAMES = {"log_loss": "log loss", "brier": "Brier", "smooth_ce": "smCE", "auc": "AUC"}
_NONE, _KERNEL, _SMOOTH, _SMOOTHING, _DECAY, _BOTH, _HELD_OUT = training.FAMILIES
_ALL = (*training.SETTINGS, *training.SHIFTS)
_PAGE = """\
# A penalty in training, or recalibration afterwards?

A network that is trained too long says 99% where 80% is true. A penalty on miscalibration in the
training loss can prevent that, and [recalibration](../guides/recalibration.md) on rows held out
can correct it. Here are both, beside what else is usual: early stopping, weight decay, label
smoothing.

**In short.** Stop early, or let the weights decay, or both. Add `smooth_ce_loss` if training goes
on to the last epoch and rows are few or labels are wrong. Recalibrate a network that cannot be
trained again, one that was trained too long, one whose training labels are worse than those held
out, and any after the population has moved.

{findings}

![Mean excess log loss of the three laws, by setting and way of training](training.svg)

The figure shows the log loss above that of the true probabilities, geometric mean over the three
laws: at the last epoch and stopped early, as it is and recalibrated.

## What was done

Networks with two hidden layers of 100 units, trained by Adam (rate 0.002, batches of at most 250
rows) in {ways} ways, with {plan.seeds} seeds each. A seed draws rows, first weights and batches,
the same for all ways, so that differences are paired. Of a data set all seeds share the rows: there
the intervals are about splits and weights. Larger networks may behave differently: take the
questions from here, and the answers from your own rows.

- **The rows held out do the same work for all.** They say when to stop early, choose the strength
  of a family by its log loss, and fit the recalibration (`caldist.recalibrate` with its defaults).
  So a penalty of chosen strength and a network recalibrated afterwards have seen the same rows.
- *kernel penalty* adds λ `kernel_ce_loss` of the batch, λ = 3, 10 or 30; *smooth penalty* adds λ
  `smooth_ce_loss`, λ = 0.3, 1 or 3; *label smoothing* is 0.05 or 0.2; *weight decay* is decoupled,
  at a rate of 1, 3 or 10; *decay and penalty* has such a decay and the smooth penalty with λ = 0.3
  or 1; *held-out penalty* adds 30 `kernel_ce_loss` of the rows held out, in every step. Ten times
  the largest λ leaves constant predictions. The decay of 0.01 that is usual would shrink weights by
  a hundredth over the steps of the standard setting.
- Laws are judged on {plan.test_rows:,} rows by their true probabilities, so that no chance of
  labels is left; data sets on the rows that are left over, where smCE has a part of about 0.4/√n
  that is chance. For the log loss predictions are kept {certain:g} away from 0 and 1.
- A change is the mean over tasks, ± half of its 95% interval over seeds (Student's t). "4:1" means:
  better in four tasks and worse in one, each by an interval that excludes 0. Where nothing differs
  one in twenty does.
- The sentences above were written after a run on other rows, of seed 1. The numbers are those of
  seed {plan.seed}; a sentence that they do not bear out would say so.
- Run again: `{command}`, which takes a GPU where PyTorch sees one, and
  `--device cpu` to do without. With `--jobs 15` it took two minutes on a machine with an H200 and
  16 cores; without a GPU it takes about three hours of one core, by what shorter runs took. Rows,
  first weights and batches are the same everywhere, rounding is not.
- Computed on: {device}.

"""
_SECTIONS = """\
## Against training by the log loss alone

The change of the log loss, the mean over tasks. Below 0 the way is better. Trained to the last
epoch:

{last_plain}
Stopped early, both:

{early_plain}
## Against recalibration afterwards

The same networks, not recalibrated, against those trained by the log loss alone and recalibrated.
To the last epoch:

{last_recalibrated}
Stopped early, both:

{early_recalibrated}
## A penalty and recalibration

Both recalibrated. To the last epoch:

{last_both}
Stopped early:

{early_both}
## Against weight decay

Not recalibrated. To the last epoch:

{last_decay}
Stopped early:

{early_decay}
## All rows for training

Recalibration needs rows held out, which then train nothing. Here all rows train, to the last
epoch, with the strengths that were chosen before; against networks of fewer rows, trained by the
log loss alone and recalibrated:

{all_rows}
## After a shift

The networks of the standard setting meet other rows: features moved and stretched, or with noise
added to those of data sets ("covariate shift"); three of four rows of label 1 gone ("prior shift").
The log loss, the mean over tasks. "on new rows" are recalibrations fitted to as many labelled rows
from after the shift as were held out before it.

{shifts}
## Strengths

The log loss by strength, the mean over tasks, not recalibrated:

{strengths}
## Four quantities

Means over tasks; ± is one standard error.

{quantities}
## The log loss of each task

± is one standard error. "the truth" are the law's own probabilities.

{tasks}"""


# -- reading -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Change:
    """A paired difference over the tasks of a setting: its mean, and in how many it is sure.

    ``half`` is half of the 95% interval over seeds.
    """

    mean: float
    half: float
    better: int
    worse: int

    def __str__(self) -> str:
        return f"{self.mean:+.4f} ± {self.half:.4f}, {self.better}:{self.worse}"


Outcome = tuple[str, str, str]  # way, stop, after


class Results:
    """The rows of the study, found by what they are about."""

    def __init__(self, rows: Sequence[Row], seeds: int) -> None:
        from scipy.stats import t

        keys = ("setting", "task", "way", "stop", "after")
        self.rows = {tuple(row[key] for key in keys): row for row in rows}
        self.devices = sorted({row["device"] for row in rows})
        self.quantile = float(t.ppf(0.975, seeds - 1))

    def tasks(self, setting: str) -> list[str]:
        """Return the tasks of a setting."""
        return [
            task for task in training.TASKS if (setting, task, _NONE, "last", "as is") in self.rows
        ]

    def of(self, setting: str, outcome: Outcome) -> list[Row]:
        """Return the rows of all tasks; none if it was not tried in this setting."""
        found = (self.rows.get((setting, task, *outcome)) for task in self.tasks(setting))
        return [row for row in found if row is not None]

    def mean(self, setting: str, outcome: Outcome, quantity: str = "log_loss") -> float:
        """Return the mean over tasks."""
        return float(np.mean([float(row[quantity]) for row in self.of(setting, outcome)]))

    def error(self, setting: str, outcome: Outcome, quantity: str) -> float:
        """Return the standard error of the mean over tasks."""
        errors = [float(row[f"{quantity}_error"]) for row in self.of(setting, outcome)]
        return math.hypot(*errors) / len(errors)

    def change(
        self, setting: str, outcome: Outcome, to: str, quantity: str = "log_loss"
    ) -> Change | None:
        """Return a paired difference to a reference; None where it was not tried."""
        name = f"{quantity}_to_{to}"
        sign = -1 if quantity == "auc" else 1
        pairs = [
            (float(row[name]), self.quantile * float(row[f"{name}_error"]))
            for row in self.of(setting, outcome)
        ]
        if not pairs:
            return None
        return Change(
            float(np.mean([mean for mean, _ in pairs])),
            math.hypot(*(half for _, half in pairs)) / len(pairs),
            sum(sign * mean < -half for mean, half in pairs),
            sum(sign * mean > half for mean, half in pairs),
        )

    def sure(self, setting: str, outcome: Outcome, to: str, quantity: str = "log_loss") -> Change:
        """Return a paired difference that must have been tried."""
        found = self.change(setting, outcome, to, quantity)
        assert found is not None
        return found


# -- findings ------------------------------------------------------------------------------------


class Finding(NamedTuple):
    """A sentence, whether the numbers of this run bear it out, and the numbers."""

    sentence: str
    holds: bool
    numbers: str


def _findings(results: Results) -> Iterator[Finding]:
    """Give all findings, those about training first."""
    yield from _about_penalties(results)
    yield from _about_recalibrations(results)


def _about_penalties(results: Results) -> Iterator[Finding]:
    settings = tuple(training.SETTINGS)

    def loss(setting: str, way: str, stop: str = "last", after: str = "as is") -> float:
        return results.mean(setting, (way, stop, after))

    last = results.sure("standard", (_SMOOTH, "last", "as is"), "plain")
    kernel = results.sure("standard", (_KERNEL, "last", "as is"), "plain")
    noisy = results.sure("label noise", (_SMOOTH, "last", "as is"), "recalibrated")
    ranks = results.sure("label noise", (_SMOOTH, "last", "as is"), "plain", "auc")
    yield Finding(
        "A penalty helps a network that is trained past its best epoch.",
        last.worse == 0 and noisy.better > noisy.worse and ranks.mean > ranks.half,
        f"In the standard setting `smooth_ce_loss` changes the log loss by {last} "
        f"(`kernel_ce_loss` {kernel}). With a fifth of the labels wrong it is better than a "
        f"recalibration ({noisy}): it saves some of the ranking, which no recalibration can "
        f"fix (AUC {ranks}).",
    )
    fits = {
        name: results.sure(name, (_SMOOTH, "last", "as is"), "recalibrated") for name in _FITTED
    }
    listed = " and ".join(f"{found} ({name})" for name, found in fits.items())
    yield Finding(
        "It says little once the training rows are known by heart.",
        all(found.mean > 0 and found.better < found.worse for found in fits.values()),
        "Where all rows are predicted as 0 or 1, and rightly, the batch is calibrated. After long "
        f"training, and with few rows, the smooth penalty stands against recalibration at "
        f"{listed}.",
    )
    early = [results.sure(name, (_SMOOTH, "early", "as is"), "plain").mean for name in settings]
    yield Finding(
        "A network stopped early needs no penalty.",
        max(map(abs, early)) < _LITTLE
        and loss("standard", _NONE, "early") < loss("standard", _SMOOTH),
        f"There the smooth penalty changes the log loss by {min(early):+.4f} to {max(early):+.4f}, "
        "depending on the setting. Early stopping alone takes it from "
        f"{loss('standard', _NONE):.4f} to {loss('standard', _NONE, 'early'):.4f} in the standard "
        f"setting, the smooth penalty alone to {loss('standard', _SMOOTH):.4f}.",
    )
    decay = [results.sure(name, (_SMOOTH, "last", "as is"), "decay") for name in settings]
    yield Finding(
        "Weight decay does what a penalty does, and mostly more.",
        sum(found.better < found.worse for found in decay) >= len(decay) - 1,
        f"It has the lower log loss in {sum(found.mean > 0 for found in decay)} of {len(decay)} "
        f"settings, and recalibration has little to add: {loss('standard', _DECAY):.4f} as it "
        f"is, {loss('standard', _DECAY, after='recalibrated'):.4f} recalibrated, in the "
        "standard setting.",
    )
    both = {name: results.sure(name, (_BOTH, "last", "as is"), "decay") for name in settings}
    elsewhere = max(abs(found.mean) for name, found in both.items() if name not in _ADDED)
    stopped = [
        abs(results.sure(name, (_BOTH, "early", "as is"), "decay").mean) for name in settings
    ]
    best = min(
        loss("few rows", way, stop, "recalibrated")
        for way in training.FAMILIES
        for stop in ("last", "early")
    )
    yield Finding(
        "On top of weight decay a penalty helps where rows are few or labels are wrong, unless "
        "training stops early.",
        all(both[name].mean < -both[name].half for name in _ADDED)
        and max(elsewhere, *stopped) < _LITTLE,
        "At the last epoch, against weight decay alone: "
        + "; ".join(f"{name} {both[name]}" for name in _ADDED)
        + f". Elsewhere it changes at most {elsewhere:.4f}, and stopped early {max(stopped):.4f}. "
        "With few rows, decay and penalty, trained on all of them, reach "
        f"{loss('few rows', _BOTH, 'all rows'):.4f}; the best with rows held out for a "
        f"recalibration is {best:.4f}.",
    )
    pairs = [(loss(name, _SMOOTH), loss(name, _KERNEL)) for name in settings]
    ahead = sum(smooth < kernel for smooth, kernel in pairs)
    yield Finding(
        "Of the two penalties take `smooth_ce_loss`.",
        ahead == len(pairs),
        f"At the last epoch it is ahead of `kernel_ce_loss` in {ahead} of {len(pairs)} settings.",
    )
    trap = [results.sure(name, (_HELD_OUT, "early", "as is"), "plain") for name in settings]
    yield Finding(
        "Keep the rows held out out of the loss.",
        all(found.better < found.worse for found in trap),
        "A penalty on them teaches their labels. They then no longer say when to stop, and the log "
        f"loss of networks stopped early rises by up to {max(found.mean for found in trap):.4f}.",
    )


def _about_recalibrations(results: Results) -> Iterator[Finding]:
    recalibrated = (_NONE, "early", "recalibrated")
    clean = results.sure("noisy training", recalibrated, "plain")
    penalised = min(
        results.mean("noisy training", (way, "early", "as is")) for way in (_KERNEL, _SMOOTH)
    )
    reached = results.mean("noisy training", recalibrated)
    yield Finding(
        "Rows with better labels than those for training are best spent on recalibration.",
        clean.mean < -clean.half and reached < penalised,
        "Where only the training labels are wrong, recalibration changes the log loss of "
        f"networks stopped early by {clean}: to {reached:.4f}, and the better penalty to "
        f"{penalised:.4f}.",
    )
    new, other = (
        {shift: results.sure(shift, outcome, "plain") for shift in training.SHIFTS}
        for outcome in ((_NONE, "early", "recalibrated on new rows"), (_SMOOTH, "early", "as is"))
    )
    yield Finding(
        "After a shift nothing replaces new labels.",
        all(new[shift].mean + new[shift].half < other[shift].mean for shift in new),
        "; ".join(
            f"{shift}: networks stopped early, recalibrated on new rows, {new[shift]}; with a "
            f"smooth penalty instead {other[shift]}"
            for shift in new
        )
        + ".",
    )
    near, loss = (
        results.sure("standard", recalibrated, "plain", quantity)
        for quantity in ("smooth_ce", "log_loss")
    )
    many = results.sure("many rows", recalibrated, "plain", "smooth_ce")
    yield Finding(
        "Recalibration has its price, too.",
        near.mean > 0 > many.mean,
        f"Of networks stopped early, which are nearly calibrated, it raises smCE ({near}): "
        f"500 rows or fewer tell no better. The log loss changes by {loss}. With 5,000 rows held "
        f"out smCE falls ({many}).",
    )


_LITTLE = 0.01  # a change of the log loss that nobody should train for
_FITTED = ("long training", "few rows")
_ADDED = ("label noise", "noisy training", "few rows")


# -- the page ------------------------------------------------------------------------------------


def training_page(rows: Sequence[Row], plan: training.Plan, command: str) -> str:
    """Return the page."""
    results = Results(rows, plan.seeds)
    findings = [
        fill(
            f"- **{'' if finding.holds else NOT_FOUND}{finding.sentence}** {finding.numbers}",
            100, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False,
        )
        for finding in _findings(results)
    ]  # fmt: skip
    compared = {
        f"{stop}_{name}": _changes(results, stop, after, to)
        for stop in ("last", "early")
        for name, after, to in (
            ("plain", "as is", "plain"),
            ("recalibrated", "as is", "recalibrated"),
            ("both", "recalibrated", "recalibrated"),
            ("decay", "as is", "decay"),
        )
    }
    head = _PAGE.format(
        findings="\n".join(findings), plan=plan, ways=len(training.ways()), command=command,
        device=", and on ".join(results.devices), certain=training.CERTAIN,
    )  # fmt: skip
    lines = [
        *table(("task", "what it is"), ((t.name, t.text) for t in training.TASKS.values())),
        *table(("setting", "what it is"), ((s.name, s.text) for s in training.SETTINGS.values())),
    ]
    body = _SECTIONS.format(
        **compared,
        all_rows=_changes(results, "all rows", "as is", "recalibrated"),
        shifts=_shifts(results),
        strengths=_strengths(results),
        quantities=_quantities(results),
        tasks=_tasks(results),
    )
    return "\n".join([head + "\n".join(lines), body])


def _changes(results: Results, stop: str, after: str, to: str) -> str:
    """Return a table with a line for each setting and a column for each way."""
    ways = [way for way in training.FAMILIES if (way, after) != training.REFERENCES[to]]
    lines = []
    for setting in _ALL:
        found = [results.change(setting, (way, stop, after), to) for way in ways]
        if any(found):
            lines.append([setting, *("" if one is None else str(one) for one in found)])
    kept = [at for at in range(len(ways) + 1) if any(line[at] for line in lines)]
    header = ["setting", *ways]
    return "\n".join(
        table([header[at] for at in kept], [[line[at] for at in kept] for line in lines])
    )


def _shifts(results: Results) -> str:
    afters = ("as is", "recalibrated", "recalibrated on new rows")
    header = ["shift", "way", "stop", "as it is", "recalibrated", "on new rows"]
    lines = [
        [shift, way, stop, *(f"{results.mean(shift, (way, stop, after)):.4f}" for after in afters)]
        for shift in training.SHIFTS
        for way in training.FAMILIES
        for stop in ("last", "early")
    ]
    return "\n".join(table(header, lines))


def _strengths(results: Results) -> str:
    settings = tuple(training.SETTINGS)
    lines = []
    for way in training.ways():
        name = way.family if way.family in (_NONE, _HELD_OUT) else str(way)
        for stop in ("last", "early"):
            means = (results.mean(setting, (name, stop, "as is")) for setting in settings)
            lines.append([name, stop, *(f"{mean:.4f}" for mean in means)])
    return "\n".join(table(["way", "stop", *settings], lines))


def _stopped() -> list[tuple[str, str]]:
    stops = [(stop, after) for stop in ("last", "early") for after in ("as is", "recalibrated")]
    return [*stops, ("all rows", "as is")]


def _quantities(results: Results) -> str:
    lines = []
    for setting in _ALL:
        for way in training.FAMILIES:
            for stop, after in _stopped():
                outcome = (way, stop, after)
                if results.of(setting, outcome):
                    cells = (
                        f"{results.mean(setting, outcome, quantity):.4f} ± "
                        f"{results.error(setting, outcome, quantity):.4f}"
                        for quantity in training.QUANTITIES
                    )
                    lines.append([setting, *outcome, *cells])
    return "\n".join(table(["setting", "way", "stop", "after", *_NAMES.values()], lines))


def _tasks(results: Results) -> str:
    lines = []
    for setting in _ALL:
        tasks = results.tasks(setting)
        for way in (*training.FAMILIES, "the truth"):
            for stop, after in _stopped():
                rows = [results.rows.get((setting, task, way, stop, after)) for task in tasks]
                if not any(rows):
                    continue
                cells = [
                    ""
                    if row is None
                    else f"{float(row['log_loss']):.4f} ± {float(row['log_loss_error']):.4f}"
                    for row in rows
                ]
                cells += [""] * (len(training.TASKS) - len(cells))
                lines.append([setting, way, stop, after, *cells])
    return "\n".join(table(["setting", "way", "stop", "after", *training.TASKS], lines))


# -- the figure ----------------------------------------------------------------------------------

_MARKS: dict[tuple[str, str], dict[str, Any]] = {
    ("last", "as is"): {"marker": "o", "mfc": "#b5490b", "mec": "#b5490b"},
    ("last", "recalibrated"): {"marker": "o", "mfc": "white", "mec": "#b5490b"},
    ("early", "as is"): {"marker": "^", "mfc": "black", "mec": "black"},
    ("early", "recalibrated"): {"marker": "^", "mfc": "white", "mec": "black"},
}
_TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)


def training_figure(rows: Sequence[Row]) -> bytes:
    """Draw the excess log loss of the laws, a panel for each setting, as SVG."""
    keys = ("setting", "task", "way", "stop", "after")
    losses = {tuple(row[key] for key in keys): float(row["log_loss"]) for row in rows}
    with style():
        drawn = figure(7.2, 6.0)
        panels = np.ravel(drawn.subplots(2, 4, sharey=True))
        for axes, setting in zip(panels, _ALL, strict=True):
            _draw(axes, setting, losses)
            axes.set_title(setting)
        ways = training.FAMILIES
        panels[0].set_yticks(range(len(ways)), ways)
        panels[0].set_ylim(len(ways) - 0.5, -0.5)
        for axes in panels[4:]:
            axes.set_xlabel("excess log loss")
        handles, names = panels[0].get_legend_handles_labels()
        drawn.legend(handles, names, loc="outside lower center", ncols=4, frameon=False)
        return render(drawn)[0]


def _draw(axes: Axes, setting: str, losses: dict[tuple[str, ...], float]) -> None:
    laws = [name for name, task in training.TASKS.items() if task.synthetic]
    for (stop, after), look in _MARKS.items():
        points = []
        for at, way in enumerate(training.FAMILIES):
            excess = [
                losses[setting, law, way, stop, after]
                - losses[setting, law, "the truth", "last", "as is"]
                for law in laws
            ]
            points.append((float(np.exp(np.mean(np.log(excess)))), at))
        x, y = np.array(points).T
        axes.plot(x, y, ls="", ms=4.5, mew=0.9, label=f"{stop}, {after}", **look)
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    ticks = [tick for tick in _TICKS if low <= tick <= high]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.grid(axis="y", color="#eeeeee", lw=0.6, zorder=0)
    axes.set_axisbelow(True)
