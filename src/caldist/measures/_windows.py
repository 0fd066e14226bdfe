"""The random-shift interval calibration error of many predictions, in threads."""

from __future__ import annotations

from caldist._kernels import shifts
from caldist._util.threads import even_parts, in_threads
from caldist._util.types import Vector

_POINTS = 2**16  # in a part; as many parts whatever the threads, so that these change no bit


def random_interval_ce(prediction: Vector, sums: Vector, width: float) -> float:
    """Return RintCE from increasing predictions and the prefix sums of their residuals."""
    parts = even_parts(prediction.size, max(1, prediction.size // _POINTS))
    found = in_threads(
        lambda part: float(shifts.random_interval_ce(prediction, sums, width, *part)), parts
    )
    return sum(found)
