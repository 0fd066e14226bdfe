"""What recalibration costs: the kernel at its worst, maps, statements, summaries, files."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import caldist
from benchmarks.families import FAMILIES
from benchmarks.tables import Table, number, size_name, verdict
from benchmarks.timing import Effort
from caldist.kernels.loader import chain

_RESAMPLES = 99
_BITS = 16


@dataclass(frozen=True)
class Sizes:
    """How many rows the cases have."""

    rows: int = 10**6
    worst: tuple[int, ...] = (10**5, 10**6)
    summaries: tuple[int, int] = (10**7, 10**9)
    file: int = 10**6


LARGE, QUICK = Sizes(), Sizes(2_000, (1_000, 2_000), (10**4, 10**5), 1_000)


def _best(function: Callable[[], Any], effort: Effort, clock: Callable[[], float]) -> float:
    taken = []
    for _ in range(effort.fewest):
        start = clock()
        function()
        taken.append(clock() - start)
    return min(taken)


def _summary(rows: int) -> caldist.Joint:
    """Return rows with logits half too large, as cells."""
    rng = np.random.default_rng(0)
    rate = (np.arange(2**_BITS) + 0.5) / 2**_BITS
    count = rng.multinomial(rows, np.full(rate.size, 1 / rate.size))
    ones = rng.binomial(count, rate)
    prediction = rate**1.5 / (rate**1.5 + (1 - rate) ** 1.5)
    joint = caldist.Joint.from_masses(prediction, count - ones, ones, n_rows=rows)
    return joint.coarsen(_BITS)


def _half_of_all_bends(n: int) -> tuple[np.ndarray, ...]:
    """Return a chain with bends close together first, and then steps that pass all of them."""
    near = n // 2
    inside = 0.5 + 1e-9 * (np.random.default_rng(0).random(near) - 0.5)
    target = np.concatenate((inside, np.arange(n - near) % 2))
    return np.ones(n), target, np.zeros(n - 1), np.full(n - 1, 1e-12 / n), np.empty(n)


def _files(n: int, method: str, effort: Effort) -> float:
    """Return what a mapped column costs in bare copies of a Parquet file."""
    from caldist.engines.files import connect
    from caldist.engines.rewrite import write_with_column
    from caldist.recalibration.sql import lookup

    sample = FAMILIES["beta=3"].make(n)
    table = caldist.recalibrate(
        sample.y_true, sample.y_prob, family=method, confidence_level=None, rng=0
    ).map
    assert table is not None
    with tempfile.TemporaryDirectory() as folder:
        here, there = (Path(folder) / name for name in ("scores.parquet", "copy.parquet"))
        connect().execute(
            f"COPY (SELECT i, random() AS p, hash(i) AS other FROM range({n}) t(i)) "
            f"TO '{here}' (FORMAT parquet)"
        )

        def mapped() -> None:
            write_with_column(
                [str(here)],
                source="p",
                column="q",
                mapping=partial(lookup, table.x, table.y),
                out=there,
            )

        def bare() -> None:
            connect().execute(f"COPY (FROM '{here}') TO '{there}' (FORMAT parquet)")

        return _best(mapped, effort, time.process_time) / _best(bare, effort, time.process_time)


def recalibration_table(sizes: Sizes, effort: Effort) -> Table:
    """Time what is promised of recalibration."""
    rows = []

    def add(what: str, taken: float, unit: str, target: float | None) -> None:
        wanted, judged = ("", "") if target is None else (f"{target:g}", verdict(taken <= target))
        rows.append([f"{what}, {unit}", number(taken), wanted, judged])

    for n in sizes.worst:
        problem = _half_of_all_bends(n)
        taken = _best(lambda p=problem: chain.fit(*p), effort, time.process_time)  # type: ignore[misc]
        add(f"the kernel at its worst, {size_name(n)} terms", taken, "s", None)
    sample = FAMILIES["beta=1"].make(sizes.rows)
    name = size_name(sizes.rows)

    def alone() -> None:
        caldist.recalibrate(sample.y_true, sample.y_prob, confidence_level=None, rng=0)

    def stated() -> None:
        caldist.recalibrate(sample.y_true, sample.y_prob, n_resamples=_RESAMPLES, rng=0)

    alone()  # what is imported and woken once
    for clock, unit in ((time.process_time, "s"), (time.perf_counter, "s by the clock")):
        add(f"a map by auto, {name} rows", _best(alone, effort, clock), unit, 1)
    add(
        f"and a statement, {_RESAMPLES} replicates",
        _best(stated, effort, time.process_time),
        "s",
        15,
    )
    taken = []
    for n in sizes.summaries:
        joint = _summary(n)
        taken.append(
            _best(
                lambda j=joint: caldist.recalibrate(j, n_resamples=_RESAMPLES, rng=0),  # type: ignore[misc]
                effort,
                time.process_time,
            )
        )
        add(f"the same from {_BITS} bits of {size_name(n)} rows", taken[-1], "s", None)
    low, high = map(size_name, sizes.summaries)
    add(f"{high} rows against {low}", taken[1] / taken[0], "ratio", 1.5)
    for method in ("auto", "isotonic"):
        what = f"caldist apply, {size_name(sizes.file)} rows of Parquet, {method}"
        add(what, _files(sizes.file, method, effort), "bare copies", 2)
    note = (
        "Processor time of all threads but where the clock is named, "
        f"{'once' if effort.fewest == 1 else f'best of {effort.fewest}'} each. At its worst every "
        "second step of the kernel passes half of all bends, chunk by chunk: O(n√n)."
    )
    return Table("Recalibration", ["what", "measured", "target", "verdict"], rows, note)
