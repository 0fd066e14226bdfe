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

from caldist.inference import _limits
from caldist.inference._resampling import Resampler
from caldist.inference.bracket import distance_bracket
from caldist.inference.comparison import compare
from caldist.inference.intervals import confidence_interval
from caldist.measures._measure import Measure
from studies.bootstrap import percentile_bootstrap
from studies.laws import LAWS, PAIRS, Law, Pair, Sample, stream
from studies.measures import BRACKET, COMPARED, SPLIT, STUDIED, TOGETHER
from studies.runs import Row
from studies.truth import SLACK, bracket_truth, difference_truth, truth

__all__ = ["FULL", "LEVELS", "ROWS", "SPLITTING", "Plan", "cells", "coverage_cell", "plan_of"]

LEVELS = (0.9, 0.95)
ROWS = (100, 400, 2000)
TOLERANCE = 0.02  # what a measured coverage may lie below its level

Ends = tuple[float, float]


@dataclass(frozen=True)
class Plan:
    """How much work a cell is.

    Attributes
    ----------
    seed
        Of all random streams.
    data_sets
        Data sets to draw, by the number of rows.
    n_resamples
        Resamples for each interval. The order statistics of the intervals keep their level with any
        number of resamples, so few are enough here.
    longest
        As long as it is open whether the coverage is high enough, as many data sets are drawn
        again, up to this many times.
    means
        The same factor for the Brier score, which is cheap and whose coverage is not above its
        level.
    bootstrap_sets, distance_sets, bootstrap_resamples
        Data sets that are also bootstrapped, fewer for the lower distance, which then needs a
        solver for each resample; and resamples for each.
    """

    seed: int = 1
    data_sets: tuple[int, ...] = (200, 150, 100)
    n_resamples: int = 99
    longest: int = 4
    means: int = 10
    bootstrap_sets: int = 40
    distance_sets: int = 8
    bootstrap_resamples: int = 59

    def __str__(self) -> str:
        return (
            f"seed {self.seed}; data sets {self.data_sets} x {self.longest} ({self.means}); "
            f"resamples {self.n_resamples}; bootstrap {self.bootstrap_sets} "
            f"({self.distance_sets}) x {self.bootstrap_resamples}"
        )


FULL = Plan()
# Cells of limits by splitting: more data sets as long as they leave it open.
SPLITTING = Plan(data_sets=(200, 200, 100), longest=5)


def plan_of(full: Plan, splitting: Plan, cell: tuple[str | int, ...]) -> Plan:
    """Return the plan of a cell: of those with limits by splitting the second one."""
    return splitting if cell[0] in LAWS and cell[2] in TOGETHER else full


def cells(rows: Sequence[int] = ROWS) -> list[tuple[str, int, str]]:
    """Return (law or pair, rows, measure) of all cells, the slow ones first.

    A cell of a measure in ``TOGETHER`` has rows for all that is made together with it.
    """
    found = [m for m in (*STUDIED, BRACKET) if m in TOGETHER or m not in _ALONG]
    return [
        (name, n, measure)
        for n in sorted(rows, reverse=True)
        for laws, measures in ((LAWS, found), (PAIRS, COMPARED))
        for name in laws
        for measure in measures
    ]


_ALONG = {name for names in TOGETHER.values() for name in names[1:]}


def coverage_cell(name: str, n: int, measure: str, *, plan: Plan) -> list[Row]:
    """Simulate one cell and return a row for each measure and confidence level."""
    law = LAWS.get(name) or PAIRS[name]
    measures = TOGETHER.get(measure, (measure,)) if isinstance(law, Law) else (measure,)
    methods = {key: _method(law, key, plan.n_resamples) for key in measures}
    first = plan.data_sets[ROWS.index(n)] * (plan.means if measure == "brier_score" else 1)
    hits = {key: _Tally() for key in measures}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"only \d", UserWarning)
        for at in range(first * plan.longest):
            if at and at % first == 0 and all(tally.is_clear() for tally in hits.values()):
                break
            sample = law.draw(n, stream(plan.seed, name, n, at))
            with drawn_once():
                for key, (interval, true) in methods.items():
                    ends = [
                        interval(sample, level, stream(plan.seed, name, n, measure, at))
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
    for at in range(min(sets, plan.data_sets[ROWS.index(n)])):
        sample = law.draw(n, stream(plan.seed, law.name, n, at))
        rng = stream(plan.seed, law.name, n, measure, at, "bootstrap")
        tally.add(
            percentile_bootstrap(sample, measure, LEVELS, plan.bootstrap_resamples, rng), true
        )
    return tally


def _rows(
    law: Law | Pair, n: int, measure: str, hits: _Tally, bootstrap: _Tally, true: Ends
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
    run, split = Resampler.run, _limits.split_mean
    kept: dict[Any, Any] = {}

    def once(self: Resampler, replicate: Any, *, family: int, size: int) -> Any:
        if family not in kept:
            kept[family] = run(replace(self, threads=1), replicate, family=family, size=size)
        return kept[family]

    def split_once(measure: Measure[Any], dealt: Any, rate: Any) -> Any:
        if str(measure) not in kept:
            kept[str(measure)] = split(measure, dealt, rate)
        return kept[str(measure)]

    with (
        mock.patch.object(Resampler, "run", once),
        mock.patch.object(_limits, "split_mean", split_once),
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

    def add(self, ends: Sequence[Ends], true: Ends) -> None:
        self.total += 1
        for k, (low, high) in enumerate(ends):
            below, above = high < true[1] - SLACK, low > true[0] + SLACK
            self.too_low[k] += below
            self.too_high[k] += above
            self.missed[k] += below or above
            self.widths[k] += high - low

    def coverage(self, k: int) -> float:
        return 1 - self.missed[k] / self.total

    def width(self, k: int) -> float:
        return self.widths[k] / self.total

    def is_clear(self) -> bool:
        """Whether every coverage is two standard errors above what is asked for."""
        found = [self.coverage(k) for k in range(len(LEVELS))]
        return all(
            share - 2 * math.sqrt(share * (1 - share) / self.total) >= level - TOLERANCE
            for share, level in zip(found, LEVELS, strict=True)
        )


def _method(
    law: Law | Pair, measure: str, n_resamples: int
) -> tuple[Callable[[Sample, float, np.random.Generator], Ends], Ends]:
    """Return what makes an interval, and what the interval should hold from end to end."""
    if isinstance(law, Pair):
        true = (difference_truth(law.name, measure),) * 2
        return partial(_difference, measure, n_resamples), true
    if measure == BRACKET:
        return partial(_bracket, n_resamples), bracket_truth(law.name)
    name = measure.removesuffix(SPLIT)
    return partial(_interval, measure, n_resamples), (truth(law.name, name),) * 2


def _interval(
    measure: str, n_resamples: int, sample: Sample, level: float, rng: np.random.Generator
) -> Ends:
    name = measure.removesuffix(SPLIT)
    found = confidence_interval(
        sample.y_true, sample.y_prob, measure=STUDIED[name], confidence_level=level,
        method="resampling" if name == measure else "split", n_resamples=n_resamples,
        clusters=sample.clusters, rng=rng,
    )  # fmt: skip
    return found.lower, found.upper


def _difference(
    measure: str, n_resamples: int, sample: Sample, level: float, rng: np.random.Generator
) -> Ends:
    assert sample.y_other is not None
    found = compare(
        sample.y_true, sample.y_prob, sample.y_other, measure=STUDIED[measure],
        confidence_level=level, n_resamples=n_resamples, clusters=sample.clusters, rng=rng,
    )  # fmt: skip
    return found.lower, found.upper


def _bracket(n_resamples: int, sample: Sample, level: float, rng: np.random.Generator) -> Ends:
    found = distance_bracket(
        sample.y_true, sample.y_prob, confidence_level=level, n_resamples=n_resamples,
        clusters=sample.clusters, rng=rng,
    )  # fmt: skip
    return found.lower, found.upper
