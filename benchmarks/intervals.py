"""Confidence intervals with 999 replicates, in multiples of ``np.argsort(y_prob)``."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from tqdm import tqdm

import caldist
from benchmarks.families import FAMILIES, Sample
from benchmarks.tables import Table, number, size_name, verdict
from benchmarks.timing import Effort, best_of, side_by_side

SIZES = (10**4, 10**5)
LARGE = 10**6
RESAMPLES = 999
_SPLIT, _BRACKET = 12.0, 3.0  # times smooth_ce itself; seconds
_STATEMENT = 2.0  # seconds

# The most that an interval may cost, by measure; without a number there is no target.
_TARGETS: dict[str, float | None] = {
    "smooth_ce": 2000,
    "kernel_ce": None,
    "random_interval_ce": None,
    "lower_distance": None,
    "surrogate_interval_ce": None,
}
_FAMILIES = ("beta=1", "beta=3", "calibrated", "tied")


def _interval(sample: Sample, measure: str) -> float:
    """Make an interval; return the processor time that all threads spent on it."""
    start = time.process_time()
    caldist.confidence_interval(
        sample.y_true, sample.y_prob, measure=measure, n_resamples=RESAMPLES, rng=0
    )
    return time.process_time() - start


def interval_table(sizes: Sequence[int], effort: Effort) -> Table:
    """Lay out the ratios: a row for each measure and family, two columns for each size."""
    rows = []
    wanted = [(measure, family) for measure in _TARGETS for family in _FAMILIES]
    progress = tqdm(wanted, unit="row", file=sys.stderr, disable=not sys.stderr.isatty())
    for measure, family in progress:
        progress.set_description(f"interval of {measure} on {family}")
        target = _TARGETS[measure]
        cells, kept = [], True
        for n in sizes:
            sample = FAMILIES[family].make(n)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # few rows of a label, when quick
                timing = side_by_side(
                    partial(_interval, sample, measure), partial(np.argsort, sample.y_prob), effort
                )
            cells += [number(timing.ratio), number(timing.result / timing.reference)]
            kept = kept and (target is None or n not in SIZES or timing.ratio <= target)
        judged = target is not None and any(n in SIZES for n in sizes)
        rows.append(
            [
                measure,
                family,
                *cells,
                "" if target is None else number(target),
                verdict(kept) if judged else "",
            ]
        )
    columns = [f"{size_name(n)}{kind}" for n in sizes for kind in ("", ", processor")]
    note = (
        f"caldist.confidence_interval with {RESAMPLES} replicates, from raw unsorted arrays, in "
        "multiples of np.argsort(y_prob) of the same array; the two run in turn in one process, "
        f"{best_of(effort)}. The second number counts the processor time of all threads."
    )
    header = ["measure", "family", *columns, "target", "verdict"]
    return Table("Confidence intervals, in multiples of np.argsort", header, rows, note)


def _processor(function: Callable[[], object], effort: Effort) -> float:
    """Return the least processor time of all threads in a few calls."""
    best = float("inf")
    for _ in range(effort.fewest):
        start = time.process_time()
        function()
        best = min(best, time.process_time() - start)
    return best


def limits_table(n: int, effort: Effort) -> Table:
    """Lay out what limits without replicates cost, in processor time."""
    rows = []
    for family in _FAMILIES:
        sample = FAMILIES[family].make(n)
        given = (sample.y_true, sample.y_prob)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # few rows of a label, when quick
            value = _processor(partial(caldist.smooth_ce, *given), effort)
            split = _processor(
                partial(caldist.confidence_interval, *given, method="cross_fit", rng=0), effort
            )
            bracket = _processor(
                partial(caldist.confidence_interval, *given, measure="distance", rng=0), effort
            )
        kept = n < LARGE or (split <= _SPLIT * value and bracket <= _BRACKET)
        cells = [number(1e3 * value), number(1e3 * split), number(split / value), number(bracket)]
        rows.append([family, *cells, verdict(kept) if n >= LARGE else ""])
    note = (
        f"Processor time of all threads at {size_name(n)} rows, from raw unsorted arrays, best of "
        f"{effort.fewest}. The interval of smooth_ce by splitting may take {_SPLIT:g} times "
        f"smooth_ce itself, the bracket with a confidence level {_BRACKET:g} s."
    )
    header = ["family", "smooth_ce, ms", "its interval, ms", "ratio", "bracket, s", "verdict"]
    return Table("Limits without replicates", header, rows, note)


def statistics_table(n: int, effort: Effort) -> Table:
    """Lay out what statements about many rows cost, in processor time."""
    rng = np.random.default_rng(0)
    given_too: dict[str, dict[str, Any]] = {name: {} for name in _FAMILIES}
    given_too["beta=1, weights"] = {"sample_weight": rng.lognormal(size=n)}
    given_too["beta=1, clusters"] = {"clusters": rng.integers(0, max(n // 20, 1), n)}
    rows = []
    for family, more in given_too.items():
        sample = FAMILIES[family.split(",")[0]].make(n)
        given = (sample.y_true, sample.y_prob)
        other = (sample.y_prob + 0.01 * np.sin(9 * sample.y_prob)).clip(0, 1)
        more |= {"rng": 0}
        calls: dict[str, Callable[[], object]] = {
            "confidence_interval, cross_fit": partial(
                caldist.confidence_interval, *given, method="cross_fit", **more
            ),
            "confidence_interval, resampling": partial(
                caldist.confidence_interval, *given, method="resampling", **more
            ),
            "calibration_test": partial(caldist.calibration_test, *given, **more),
            "compare": partial(caldist.compare, *given, other, **more),
            "miscalibrated_regions": partial(
                caldist.inference.miscalibrated_regions, *given, **more
            ),
        }
        for name, call in calls.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # few rows of a label, when quick
                seconds = _processor(call, effort)
            judged = verdict(seconds <= _STATEMENT) if n >= LARGE else ""
            rows.append([name, family, number(seconds), f"{_STATEMENT:g} s", judged])
    note = (
        f"Processor time of all threads at {size_name(n)} rows, from raw unsorted arrays, best of "
        f"{effort.fewest}. "
        "calibration_test draws labels for cells of so many rows. "
        "Weights are lognormal; clusters have about twenty rows."
    )
    header = ["call", "family", "seconds", "target", "verdict"]
    return Table("Statements about many rows", header, rows, note)
