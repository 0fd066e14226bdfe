"""How often intervals hold the population's value, beside the percentile bootstrap."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from unittest import mock

import numpy as np

from caldist.inference import limits
from caldist.inference.comparison import compare
from caldist.inference.intervals import confidence_interval
from caldist.inference.resampling import Resampler
from caldist.measures.base import Measure
from studies.bootstrap import percentile_bootstrap
from studies.laws import LAWS, PAIRS, Law, Pair, Sample, stream
from studies.measures import BRACKET, CROSS_FIT, DIFFERENCES, STUDIED, TOGETHER
from studies.runs import Row
from studies.truth import SLACK, bracket_truth, difference_truth, truth

__all__ = ["FULL", "LEVELS", "ROWS", "Plan", "cells", "coverage_cell"]

LEVELS = (0.9, 0.95)
ROWS = (100, 400, 2000)
TOLERANCE = 0.015  # what a coverage may lie below its level, beyond two standard errors of its own


Truth = tuple[float, float]  # what an interval should hold, from end to end


@dataclass(frozen=True)
class Ends:
    """An interval, the value on the sample, and so how the value errs around the truth."""

    lower: float
    upper: float
    value: float = math.nan


@dataclass(frozen=True)
class Plan:
    """How much work a cell is.

    Attributes
    ----------
    seed
        Of all random streams.
    data_sets
        Data sets in every cell, whatever the first of them show.
    n_resamples
        Resamples for each interval. The order statistics of the intervals keep their level with any
        number of resamples, so few are enough here.
    bootstrap_sets, distance_sets, bootstrap_resamples
        Data sets that are also bootstrapped, fewer for the lower distance, which then needs a
        solver for each resample; and resamples for each.
    """

    seed: int = 1
    data_sets: int = 1000
    n_resamples: int = 99
    bootstrap_sets: int = 40
    distance_sets: int = 8
    bootstrap_resamples: int = 59

    def __str__(self) -> str:
        return (
            f"seed {self.seed}; data sets {self.data_sets}; resamples {self.n_resamples}; "
            f"bootstrap {self.bootstrap_sets} ({self.distance_sets}) x {self.bootstrap_resamples}"
        )


FULL = Plan()


def cells(rows: Sequence[int] = ROWS) -> list[tuple[str, int, str]]:
    """Return (law or pair, rows, measure) of all cells, the slow ones first.

    A cell of a measure in ``TOGETHER`` has rows for all that is made together with it.
    """
    found = [m for m in (*STUDIED, BRACKET) if m in TOGETHER or m not in _ALONG]
    return [
        (name, n, measure)
        for n in sorted(rows, reverse=True)
        for laws, measures in ((LAWS, found), (PAIRS, DIFFERENCES))
        for name in laws
        for measure in measures
    ]


_ALONG = {name for names in TOGETHER.values() for name in names[1:]}


def coverage_cell(name: str, n: int, measure: str, *, plan: Plan) -> list[Row]:
    """Simulate one cell and return a row for each measure and confidence level."""
    law = LAWS.get(name) or PAIRS[name]
    measures = TOGETHER.get(measure, (measure,)) if isinstance(law, Law) else (measure,)
    methods = {key: _method(law, key, plan.n_resamples) for key in measures}
    seeded = measure.replace(CROSS_FIT, ", split")  # as the committed table was made
    hits = {key: _Tally() for key in measures}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"only \d", UserWarning)
        for at in range(plan.data_sets):
            sample = law.draw(n, stream(plan.seed, name, n, at))
            with drawn_once():
                for key, (interval, true) in methods.items():
                    ends = [
                        interval(sample, level, stream(plan.seed, name, n, seeded, at))
                        for level in LEVELS
                    ]
                    hits[key].add(ends, true)
    return [
        row
        for key in measures
        for row in _rows(law, n, key, hits[key], _bootstrapped(law, n, key, plan), methods[key][1])
    ]


def _bootstrapped(law: Law | Pair, n: int, measure: str, plan: Plan) -> _Tally:
    """Return what the percentile bootstrap shows on the first of the same data sets."""
    tally = _Tally()
    if measure not in STUDIED:
        return tally
    _, true = _method(law, measure, plan.n_resamples)
    sets = plan.distance_sets if measure == "lower_distance" else plan.bootstrap_sets
    for at in range(min(sets, plan.data_sets)):
        sample = law.draw(n, stream(plan.seed, law.name, n, at))
        rng = stream(plan.seed, law.name, n, measure, at, "bootstrap")
        found = percentile_bootstrap(sample, measure, LEVELS, plan.bootstrap_resamples, rng)
        tally.add([Ends(*ends) for ends in found], true)
    return tally


def _rows(
    law: Law | Pair, n: int, measure: str, hits: _Tally, bootstrap: _Tally, true: Truth
) -> list[Row]:
    return [
        {
            "law": law.name,
            "rows": str(n),
            "measure": measure,
            "level": str(level),
            "events": f"{law.events(n):.0f}",
            "truth": " to ".join(f"{end:.6f}" for end in dict.fromkeys(true)),
            "data_sets": str(hits.total),
            "coverage": f"{hits.coverage(k):.4f}",
            "too_low": f"{hits.too_low[k] / hits.total:.4f}",
            "too_high": f"{hits.too_high[k] / hits.total:.4f}",
            "width": f"{hits.width(k):.5f}",
            "oracle": f"{hits.oracle(level, true):.5f}",
            "bootstrap_sets": str(bootstrap.total),
            "bootstrap_coverage": f"{bootstrap.coverage(k):.4f}" if bootstrap.total else "",
            "bootstrap_width": f"{bootstrap.width(k):.5f}" if bootstrap.total else "",
        }
        for k, level in enumerate(LEVELS)
    ]


@contextmanager
def drawn_once() -> Iterator[None]:
    """Give limits of one sample and seed the same replicates and duals, made once.

    The same seed would make the same ones again. The lowest level must come first, since it needs
    the most replicates. One thread is used, because the cells share the cores already.
    """
    run, split = Resampler.run, limits.split_mean
    kept: dict[Any, Any] = {}

    def once(self: Resampler, replicate: Any, *, family: int, size: int) -> Any:
        if family not in kept:
            kept[family] = run(replace(self, threads=1), replicate, family=family, size=size)
        return kept[family]

    def split_once(measure: Measure[Any], folds: Any, rate: Any) -> Any:
        if str(measure) not in kept:
            kept[str(measure)] = split(measure, folds, rate)
        return kept[str(measure)]

    with (
        mock.patch.object(Resampler, "run", once),
        mock.patch.object(limits, "split_mean", split_once),
    ):
        yield


class _Tally:
    """Counts, for each level, how often intervals lie below or above the truth."""

    def __init__(self) -> None:
        self.total = 0
        self.too_low = np.zeros(len(LEVELS), dtype=np.int64)
        self.too_high = np.zeros(len(LEVELS), dtype=np.int64)
        self.missed = np.zeros(len(LEVELS), dtype=np.int64)
        self.widths = np.zeros(len(LEVELS))
        self.values: list[float] = []

    def add(self, ends: Sequence[Ends], true: Truth) -> None:
        self.total += 1
        self.values.append(ends[0].value)
        for k, found in enumerate(ends):
            below, above = found.upper < true[1] - SLACK, found.lower > true[0] + SLACK
            self.too_low[k] += below
            self.too_high[k] += above
            self.missed[k] += below or above
            self.widths[k] += found.upper - found.lower

    def coverage(self, k: int) -> float:
        return 1 - self.missed[k] / self.total

    def width(self, k: int) -> float:
        return self.widths[k] / self.total

    def oracle(self, level: float, true: Truth) -> float:
        """Return the width that one has who knows how values err around the truth.

        The value on a sample, less its largest and plus its least error but for what the level
        allows. For a bracket, which has no value, what infinitely many rows would leave.
        """
        if math.isnan(self.values[0]):
            return true[1] - true[0]
        low, high = np.quantile(self.values, [(1 - level) / 2, (1 + level) / 2])
        return float(high - low)


def _method(
    law: Law | Pair, measure: str, n_resamples: int
) -> tuple[Callable[[Sample, float, np.random.Generator], Ends], Truth]:
    """Return what makes an interval, and what the interval should hold from end to end."""
    if isinstance(law, Pair):
        true = (difference_truth(law.name, measure.removesuffix(CROSS_FIT)),) * 2
        return partial(_difference, measure, n_resamples), true
    if measure == BRACKET:
        return partial(_bracket, n_resamples), bracket_truth(law.name)
    name = measure.removesuffix(CROSS_FIT)
    return partial(_interval, measure, n_resamples), (truth(law.name, name),) * 2


def _interval(
    measure: str, n_resamples: int, sample: Sample, level: float, rng: np.random.Generator
) -> Ends:
    name = measure.removesuffix(CROSS_FIT)
    found = confidence_interval(
        sample.y_true, sample.y_prob, measure=STUDIED[name], confidence_level=level,
        method="resampling" if name == measure else "cross_fit", n_resamples=n_resamples,
        clusters=sample.clusters, rng=rng,
    )  # fmt: skip
    return Ends(found.lower, found.upper, found.value)


def _difference(
    measure: str, n_resamples: int, sample: Sample, level: float, rng: np.random.Generator
) -> Ends:
    assert sample.y_other is not None
    name = measure.removesuffix(CROSS_FIT)
    found = compare(
        sample.y_true, sample.y_prob, sample.y_other, measure=STUDIED[name],
        confidence_level=level, n_resamples=n_resamples, clusters=sample.clusters,
        method="resampling" if name == measure else "cross_fit", rng=rng,
    )  # fmt: skip
    return Ends(found.lower, found.upper, found.difference)


def _bracket(n_resamples: int, sample: Sample, level: float, rng: np.random.Generator) -> Ends:
    found = confidence_interval(
        sample.y_true, sample.y_prob, measure=BRACKET, confidence_level=level,
        n_resamples=n_resamples, clusters=sample.clusters, rng=rng,
    )  # fmt: skip
    return Ends(found.lower, found.upper)
