"""By how much a call on many rows lifts the peak of a fresh process's memory."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.families import FAMILIES

_FAMILY = "beta=1"
_ROOT = Path(__file__).parents[1]  # where the process finds this package

# The peak of the resident memory, which also sees what C code allocates. The kernel's VmHWM starts
# afresh with the process; getrusage's ru_maxrss does not, it starts at what the parent has. Loading
# the arrays from files leaves no earlier peak behind which the call's own could hide, and the first
# call, on two rows, has everything imported.
_CALL = """
import sys
import numpy as np
import caldist
from benchmarks.families import Sample
{setup}
def peak():
    with open("/proc/self/status") as status:
        return next(1024 * int(line.split()[1]) for line in status if line.startswith("VmHWM"))
call(Sample(np.array([0, 1, 1]), np.array([0.25, 0.5, 0.75])))
sample = Sample(*(np.load(path) for path in sys.argv[1:]))
before = peak()
call(sample)
print((peak() - before) / (sample.y_true.nbytes + sample.y_prob.nbytes))
"""


def printed_number(code: str, *arguments: str) -> float:
    """Return the number that a fresh Python prints."""
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=_ROOT)
    return float(done.stdout)


def extra_memory(setup: str, n: int) -> float | None:
    """Return the peak memory on n rows beyond the input, in multiples of that.

    ``setup`` is code that defines ``call``, a function of a sample. None where the system does not
    tell.
    """
    if not Path("/proc/self/status").exists():
        return None
    sample = FAMILIES[_FAMILY].make(n)
    with tempfile.TemporaryDirectory() as folder:
        paths = [f"{folder}/{name}.npy" for name in ("y_true", "y_prob")]
        for path, array in zip(paths, (sample.y_true, sample.y_prob), strict=True):
            np.save(path, array)
        del sample
        return printed_number(_CALL.format(setup=setup), *paths)
