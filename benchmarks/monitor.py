"""What a monitor costs: a batch, whatever came before it, and the file after years of days."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np

import caldist
from benchmarks.tables import Table, number, size_name, verdict
from benchmarks.timing import Effort, best_of

DAYS = (20, 200, 1000, 3653)
LARGE = 10**6
_DAY_ROWS = 1000
_MILLISECONDS, _ROWS_A_SECOND, _KIBIBYTES = 2.0, 1e7, 1024.0


def _day(rng: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    p = rng.random(rows)
    return rng.random(rows) < p, p


def monitor_table(days: tuple[int, ...], large: int, effort: Effort) -> Table:
    """Time batches of a thousand rows along a stream, a large one, and weigh the file."""
    rng = np.random.default_rng(0)
    monitor, day, rows = caldist.Monitor(tolerance=0.02), 0, []
    for stop in days:
        seconds = []
        while day < stop:
            batch = _day(rng, _DAY_ROWS)
            start = time.process_time()
            monitor.update(*batch, label=day)
            seconds.append(time.process_time() - start)
            day += 1
        taken = 1e3 * float(np.median(seconds[-20:]))
        what = f"a batch of {size_name(_DAY_ROWS)} rows after {stop:,} days"
        rows.append([what, f"{number(taken)} ms", f"{_MILLISECONDS:g} ms", verdict(taken <= 2.0)])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "monitor.npz"
        monitor.save(path)
        size = path.stat().st_size / 1024
        rows.append(
            [
                f"the file after {day:,} days",
                f"{number(size)} KiB",
                f"{_KIBIBYTES:g} KiB",
                verdict(size <= _KIBIBYTES),
            ]
        )
    batch, best = _day(rng, large), np.inf
    for repeat in range(max(effort.fewest, 1)):
        start = time.perf_counter()
        monitor.update(*batch, label=day + repeat)
        best = min(best, time.perf_counter() - start)
    speed = large / best
    target = f"{_ROWS_A_SECOND:.0e} rows/s".replace("+0", "")
    rows.append(
        [
            f"a batch of {size_name(large)} rows",
            f"{speed:.1e} rows/s".replace("+0", ""),
            target,
            verdict(speed >= _ROWS_A_SECOND),
        ]
    )
    note = (
        "caldist.Monitor(tolerance=0.02).update(y_true, y_prob, label=day): everything that a step "
        "says, from raw arrays. Processor time of all threads, the median of the last 20 days; the "
        f"large batch {best_of(effort)}, by the clock."
    )
    return Table("The monitor", ["what", "measured", "target", "verdict"], rows, note)
