"""``summarize`` against the bare GROUP BY of the same engine: ``python -m benchmarks.engines``.

The bare query groups rows by floor(65536 p), counts them and adds up the labels; ``summarize``
also checks every row, and adds up places and squares for each label. Both run in turn on Parquet
files made here. Memory is measured in a fresh process for each engine.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.tables import Table, machine, number, size_name, verdict
from benchmarks.timing import Effort, best_of, side_by_side
from caldist import evaluate
from caldist.engines import summarize

_COLUMNS = {"y_true": "label", "y_prob": "score"}
_ROWS_PER_FILE = 10**7
_BARE = "SELECT floor(score * 65536) AS cell, count(*) AS n, sum(label) AS ones FROM {} GROUP BY 1"
_RATIO = 2.0  # targets
_EVALUATION = 0.5
_MEGABYTES = 400.0
_WITH_TARGETS = ("duckdb", "polars")
_EFFORT = Effort(seconds=10.0, fewest=3, most=15)
_QUICK = Effort(seconds=0.0, fewest=1, most=1)

# VmHWM is the peak of resident memory since the process began.
_MEMORY = """
import sys
from caldist import evaluate
from caldist.engines import summarize
engine, path = sys.argv[1:]
if engine == "polars":
    import polars
    table = polars.scan_parquet(path + "/*.parquet")
else:
    table = path
joint = summarize(table, y_true="label", y_prob="score")
with open("/proc/self/status") as status:
    print(next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1000)
"""


def make_files(folder: Path, rows: int) -> None:
    """Write calibrated rows, v in [0, 1] with more mass near 0, as Parquet."""
    import duckdb

    connection = duckdb.connect()
    for part, start in enumerate(range(0, rows, _ROWS_PER_FILE)):
        count = min(_ROWS_PER_FILE, rows - start)
        connection.execute(f"SELECT setseed({(part + 1) / 1000})")
        connection.execute(
            "COPY (SELECT u * u AS score, CAST(random() < u * u AS INTEGER) AS label FROM "
            f"(SELECT random() AS u FROM range({count}))) TO '{folder}/part-{part:04}.parquet'"
        )


@dataclass(frozen=True)
class Contest:
    """A table of an engine and the engine's bare query on it."""

    table: Any
    bare: Callable[[], Any]


@contextmanager
def duckdb_contest(files: str) -> Iterator[Contest]:
    import duckdb

    connection = duckdb.connect()
    query = _BARE.format(f"'{files}'")
    yield Contest(
        connection.sql(f"SELECT * FROM '{files}'"),
        lambda: connection.sql(query).to_arrow_table(),
    )


@contextmanager
def polars_contest(files: str) -> Iterator[Contest]:
    import polars as pl

    table = pl.scan_parquet(files)
    cell = (pl.col("score") * 65536).floor()
    bare = table.group_by(cell).agg(pl.len(), pl.col("label").sum().alias("ones"))
    yield Contest(table, lambda: bare.collect(engine="streaming"))


@contextmanager
def dask_contest(files: str) -> Iterator[Contest]:
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        table = dd.read_parquet(files, split_row_groups="adaptive")
        cell = (table["score"] * 65536) // 1
        bare = table["label"].groupby(cell).agg(["count", "sum"])
        yield Contest(table, bare.compute)


@contextmanager
def spark_contest(files: str) -> Iterator[Contest]:
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.memory", "2g")
        .getOrCreate()
    )
    try:
        table = session.read.parquet(str(Path(files).parent))
        table.createOrReplaceTempView("scores")
        query = _BARE.format("scores")  # made anew each time, or Spark would reuse its stages
        yield Contest(table, lambda: session.sql(query).toArrow())
    finally:
        session.stop()


CONTESTS = {
    "duckdb": duckdb_contest,
    "polars": polars_contest,
    "dask": dask_contest,
    "spark": spark_contest,
}


def speed_table(folder: Path, rows: int, engines: Sequence[str], effort: Effort) -> Table:
    """Time each engine on the same files."""
    lines = []
    for engine in engines:
        with ExitStack() as stack:
            contest = stack.enter_context(CONTESTS[engine](f"{folder}/*.parquet"))
            timing = side_by_side(
                lambda contest=contest: summarize(contest.table, **_COLUMNS), contest.bare, effort
            )
        assert timing.result.n_rows == rows
        target = engine in _WITH_TARGETS
        rate = rows / timing.seconds
        lines.append(
            [
                engine,
                number(timing.reference),
                number(timing.seconds),
                f"{timing.ratio:.2f}",
                f"{_RATIO:g}" if target else "",
                verdict(timing.ratio <= _RATIO) if target else "",
                f"{rate / 1e6:.3g}",
                _duration(1e9 / rate),
                _duration(1e11 / rate),
            ]
        )
    header = (
        "engine",
        "bare, s",
        "summarize, s",
        "ratio",
        "target",
        "verdict",
        "million rows/s",
        "1e9 rows",
        "1e11 rows",
    )
    note = (
        f"{size_name(rows)} rows of Parquet, {best_of(effort)}, on all {os.cpu_count()} cores. The "
        "last two columns are computed from the rate."
    )
    return Table("summarize and the bare GROUP BY", header, lines, note)


def evaluation_table(folder: Path, effort: Effort) -> Table:
    """Time all measures of a finished summary, with and without squares."""
    lines = []
    for second_order in (False, True):
        joint = summarize(f"{folder}/*.parquet", **_COLUMNS, second_order=second_order)
        timing = side_by_side(lambda joint=joint: evaluate(joint), lambda: None, effort)
        kind = "with squares" if second_order else "as it comes"
        within = verdict(timing.seconds <= _EVALUATION)
        lines.append([kind, number(timing.seconds), f"{_EVALUATION:g}", within])
    note = f"All {len(timing.result)} measures of evaluate, {best_of(effort)}."
    return Table("evaluate of a summary", ("summary", "s", "target", "verdict"), lines, note)


def memory_table(folder: Path, rows: int, engines: Sequence[str]) -> Table:
    """Measure the peak memory of a process that summarises the files."""
    lines = []
    for engine in engines:
        command = [sys.executable, "-c", _MEMORY, engine, str(folder)]
        result = subprocess.run(command, check=True, capture_output=True, text=True)
        peak = float(result.stdout)
        lines.append([engine, number(peak), f"{_MEGABYTES:g}", verdict(peak <= _MEGABYTES)])
    note = (
        f"{size_name(rows)} rows of Parquet in files of {size_name(_ROWS_PER_FILE)}. The peak of "
        "the resident memory (VmHWM) of a fresh process, the interpreter and all imports included."
    )
    return Table("Memory", ("engine", "peak, MB", "target", "verdict"), lines, note)


def _duration(seconds: float) -> str:
    for unit, size in (("s", 60), ("min", 60), ("h", 48)):
        if seconds < size:
            return f"{seconds:.2g} {unit}"
        seconds /= 60 if unit != "h" else 24
    return f"{seconds:.2g} d"


def main(arguments: Sequence[str] | None = None) -> int:
    """Make files, run, and print tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engines", description=__doc__)
    parser.add_argument("--rows", type=float, default=1e7, help="rows for the times")
    parser.add_argument(
        "--memory-rows", type=float, default=1e8, help="rows for memory; 0 for none"
    )
    parser.add_argument("--engines", default=",".join(CONTESTS), help="which, with commas")
    parser.add_argument("--quick", action="store_true", help="1,000 rows, once: does it run?")
    options = parser.parse_args(arguments)
    rows = 1000 if options.quick else int(options.rows)
    memory_rows = 1000 if options.quick else int(options.memory_rows)
    engines = options.engines.split(",")
    tables = []
    with tempfile.TemporaryDirectory() as folder:
        make_files(Path(folder), rows)
        effort = _QUICK if options.quick else _EFFORT
        tables.append(speed_table(Path(folder), rows, engines, effort))
        if "duckdb" in engines:
            tables.append(evaluation_table(Path(folder), effort))
    measured = [engine for engine in engines if engine in _WITH_TARGETS]
    if memory_rows and measured:
        with tempfile.TemporaryDirectory() as folder:
            make_files(Path(folder), memory_rows)
            tables.append(memory_table(Path(folder), memory_rows, measured))
    print("\n".join(f"- {line}" for line in machine()), end="\n\n")
    print("\n".join(table.as_markdown() for table in tables))
    return 0


if __name__ == "__main__":
    sys.exit(main())
