"""What a fresh process pays: imports, the first call, and the memory of a large one."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.families import FAMILIES
from benchmarks.tables import Table, number, size_name, verdict

_LARGE = 10**6  # the target for memory holds from here on; below, fixed costs prevail

_IMPORT = """
import time
start = time.process_time()
import {module}
print(time.process_time() - start)
"""

_FIRST_CALL = """
import time
import numpy as np
import caldist
rng = np.random.default_rng(0)
y_prob = rng.random(1000)
y_true = (rng.random(1000) < y_prob).astype(np.int64)
start = time.perf_counter()
caldist.smooth_ce(y_true, y_prob)
print(time.perf_counter() - start)
"""

# The peak of the resident memory, which also sees what C code allocates. The kernel's VmHWM starts
# afresh with the process; getrusage's ru_maxrss does not, it starts at what the parent has. Loading
# the arrays from files leaves no earlier peak behind which the call's own could hide.
_MEMORY = """
import sys
import numpy as np
import caldist
def peak():
    with open("/proc/self/status") as status:
        return next(1024 * int(line.split()[1]) for line in status if line.startswith("VmHWM"))
caldist.smooth_ce([0, 1], [0.25, 0.5])
y_true, y_prob = (np.load(path) for path in sys.argv[1:])
before = peak()
caldist.smooth_ce(y_true, y_prob)
print((peak() - before) / (y_true.nbytes + y_prob.nbytes))
"""


def _run(code: str, *arguments: str) -> float:
    """Return the number that a fresh Python prints."""
    command = [sys.executable, "-c", code, *arguments]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def import_ratio(repeats: int) -> float:
    """Return the CPU time of ``import caldist``, in multiples of ``import numpy``."""
    ours = numpys = float("inf")
    for _ in range(repeats):
        numpys = min(numpys, _run(_IMPORT.format(module="numpy")))
        ours = min(ours, _run(_IMPORT.format(module="caldist")))
    return ours / numpys


def first_call(repeats: int) -> float:
    """Return the seconds that the first ``smooth_ce`` takes, on 1,000 rows."""
    return min(_run(_FIRST_CALL) for _ in range(repeats))


def extra_memory(n: int) -> float | None:
    """Return the peak memory of ``smooth_ce`` on n rows beyond its input, in multiples of that.

    None where the system does not tell.
    """
    if not Path("/proc/self/status").exists():
        return None
    sample = FAMILIES["beta=1"].make(n)
    with tempfile.TemporaryDirectory() as folder:
        paths = [f"{folder}/{name}.npy" for name in ("y_true", "y_prob")]
        for path, array in zip(paths, (sample.y_true, sample.y_prob), strict=True):
            np.save(path, array)
        del sample
        return _run(_MEMORY, *paths)


def _rows(n: int, repeats: int) -> Iterator[list[str]]:
    ratio = import_ratio(repeats)
    yield ["CPU time of import caldist / import numpy", number(ratio), "2", verdict(ratio <= 2)]
    milliseconds = 1000 * first_call(repeats)
    yield [
        "first smooth_ce after import, 1,000 rows, ms",
        number(milliseconds),
        "50",
        verdict(milliseconds <= 50),
    ]
    memory = extra_memory(n)
    name = f"peak memory of smooth_ce beyond its input, {size_name(n)} rows / input"
    if memory is None:
        yield [name, "not measured", "6", ""]
    else:
        yield [name, number(memory), "6", verdict(memory <= 6) if n >= _LARGE else ""]


def startup_table(n: int, *, repeats: int) -> Table:
    """Return the table of start-up and memory, the latter at n rows."""
    note = (
        f"Each in fresh processes, best of {repeats}. Memory is the rise of the peak of resident "
        "memory (VmHWM) over a call on int64 labels and float64 predictions, beta=1."
    )
    header = ["what", "measured", "target", "verdict"]
    return Table("Start-up and memory", header, list(_rows(n, repeats)), note)
