"""What the command line costs: ``python -m benchmarks.command_line``, from the root.

``caldist --help`` against a Python that imports NumPy, and ``caldist measure`` on a million rows of
CSV against DuckDB reading the same file; each in fresh processes, best of several.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.families import FAMILIES
from benchmarks.tables import Table, machine, number, size_name, verdict

ROWS = 10**6
_READ = """
import sys, time
import duckdb
start = time.perf_counter()
duckdb.connect().execute("SELECT * FROM read_csv(?)", [sys.argv[1]]).fetchnumpy()
print(time.perf_counter() - start)
"""


def _processor_seconds(arguments: Sequence[str], repeats: int) -> float:
    """Return the least processor time of a fresh Python with these arguments."""
    found = []
    for _ in range(repeats):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(found)


def _seconds(arguments: Sequence[str], repeats: int) -> float:
    found = []
    for _ in range(repeats):
        start = time.perf_counter()
        subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
        found.append(time.perf_counter() - start)
    return min(found)


def command_line_table(n: int = ROWS, repeats: int = 7) -> Table:
    """Measure both."""
    numpys = _processor_seconds(["-c", "import numpy"], repeats)
    milliseconds = 1000 * (_processor_seconds(["-m", "caldist", "--help"], repeats) - numpys)
    sample = FAMILIES["beta=3"].make(n)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "rows.csv")
        np.savetxt(
            path,
            np.column_stack((sample.y_true, sample.y_prob)),
            fmt=("%d", "%.17g"),
            delimiter=",",
            header="label,score",
            comments="",
        )
        read = min(
            float(
                subprocess.run(
                    [sys.executable, "-c", _READ, path], check=True, capture_output=True, text=True
                ).stdout
            )
            for _ in range(repeats)
        )
        options = ["--label", "label", "--score", "score", "--measure", "smooth_ce"]
        measure = _seconds(["-m", "caldist", "measure", path, *options], repeats)
    ratio = measure / read
    rows = [
        [
            "caldist --help: processor time beyond Python with NumPy, ms",
            number(milliseconds),
            "150",
            verdict(milliseconds <= 150),
        ],
        [
            f"caldist measure, smCE of {size_name(n)} CSV rows: whole process / DuckDB's reading",
            number(ratio),
            "3",
            verdict(ratio <= 3),
        ],
    ]
    note = (
        f"DuckDB reads the file to arrays in {read:.2f} s, imports not counted; the whole process "
        f"of caldist takes {measure:.2f} s. Best of {repeats}, in fresh processes."
    )
    return Table("The command line", ["what", "measured", "target", "verdict"], rows, note)


def main() -> None:
    """Print the table."""
    print("\n".join(machine()), end="\n\n")
    print(command_line_table().as_text(), end="")


if __name__ == "__main__":
    main()
