"""What a fresh process pays: imports, the first call, the memory of a large one."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.memory import extra_memory, printed_number
from benchmarks.tables import Table, number, size_name, verdict

_SMOOTH = "call = lambda sample: caldist.smooth_ce(sample.y_true, sample.y_prob)"
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


def import_ratio(repeats: int) -> float:
    """Return the CPU time of ``import caldist``, in multiples of ``import numpy``."""
    ours = numpys = float("inf")
    for _ in range(repeats):
        numpys = min(numpys, printed_number(_IMPORT.format(module="numpy")))
        ours = min(ours, printed_number(_IMPORT.format(module="caldist")))
    return ours / numpys


def first_call(repeats: int) -> float:
    """Return the seconds that the first ``smooth_ce`` takes, on 1,000 rows."""
    return min(printed_number(_FIRST_CALL) for _ in range(repeats))


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
    memory = extra_memory(_SMOOTH, n)
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
