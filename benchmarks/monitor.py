"""What a monitor costs: a batch, whatever came before it, years of days, a year of files."""

from __future__ import annotations

import subprocess
import sys
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
YEAR = 365
_LAST = 20  # days that are timed at each length of history
_MORE_SECONDS = 5.0  # than one summary by day may a year of files take


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
            monitor.update(*batch, batch=day)
            seconds.append(time.process_time() - start)
            day += 1
        taken = 1e3 * min(seconds[-_LAST:])
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
        monitor.update(*batch, batch=day + repeat)
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
        "caldist.Monitor(tolerance=0.02).update(y_true, y_prob, batch=day): everything that a step "
        "says, from raw arrays. Processor time of all threads, the least of the last "
        f"{_LAST} days; the "
        f"large batch {best_of(effort)}, by the clock."
    )
    return Table("The monitor", ["what", "measured", "target", "verdict"], rows, note)


def _make_files(folder: Path, days: int, rows: int) -> str:
    """Write a Parquet file for each day, and return the pattern of their names."""
    import duckdb

    with duckdb.connect() as connection:
        for day in range(days):
            connection.execute(
                f"COPY (SELECT DATE '2026-01-01' + {day} AS day, p, random() < p AS y "
                f"FROM (SELECT random() AS p FROM range({rows}))) "
                f"TO '{folder}/{day:04}.parquet' (FORMAT parquet)"
            )
    return f"{folder}/*.parquet"


def year_table(days: int, rows: int) -> Table:
    """Time ``caldist monitor`` on a file a day beside one summary by day of the same files."""
    with tempfile.TemporaryDirectory() as name:
        files = _make_files(Path(name), days, rows)
        start = time.perf_counter()
        table = caldist.engines.open_files(files, numbers=["y", "p"])
        joints = caldist.engines.summarize(
            table, y_true="y", y_prob="p", by="day", bits=14, memory_limit=None
        )
        summary = time.perf_counter() - start
        del joints, table
        state = Path(name) / "state.npz"
        columns = ["--label", "y", "--score", "p", "--date", "day", "--tolerance", "0.02"]
        command = [sys.executable, "-m", "caldist", "monitor", files, *columns, "--state", state]
        taken = []
        for _ in range(2):  # the second run finds nothing new
            start = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True)
            taken.append(time.perf_counter() - start)
    limit = summary + _MORE_SECONDS
    lines = [
        ["one summarize(by=day)", f"{number(summary)} s", "", ""],
        ["caldist monitor", f"{number(taken[0])} s", f"{limit:.3g} s", verdict(taken[0] <= limit)],
        ["caldist monitor again, nothing new", f"{number(taken[1])} s", "", ""],
    ]
    note = (
        f"{days} Parquet files of {size_name(rows)} rows each, a day a file, read by DuckDB; once "
        f"each, by the clock. The monitor may take {_MORE_SECONDS:g} s more than one summary."
    )
    return Table("A year of files", ["what", "measured", "target", "verdict"], lines, note)
