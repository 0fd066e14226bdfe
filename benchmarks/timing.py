"""Timing two functions side by side, so that both meet the same machine."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Effort:
    """How often to repeat: until the seconds are spent, but within these numbers of times."""

    seconds: float
    fewest: int
    most: int


THOROUGH = Effort(seconds=1.0, fewest=3, most=200)
ONCE = Effort(seconds=0.0, fewest=1, most=1)


def best_of(effort: Effort) -> str:
    """Say how often each function runs."""
    return "once each" if effort.most == 1 else f"best of {effort.fewest} to {effort.most} each"


@dataclass(frozen=True)
class Timing:
    """The best time of a function and of the reference, in seconds, and the function's result."""

    seconds: float
    reference: float
    result: Any

    @property
    def ratio(self) -> float:
        """How many times as long as the reference the function takes."""
        return self.seconds / self.reference


def side_by_side(
    function: Callable[[], Any], reference: Callable[[], Any], effort: Effort
) -> Timing:
    """Run both in turn and keep the best time of each; garbage collection waits."""
    best = best_reference = float("inf")
    result = None
    collecting = gc.isenabled()
    gc.disable()
    try:
        began = time.perf_counter()
        for repeat in range(effort.most):
            if repeat >= effort.fewest and time.perf_counter() - began > effort.seconds:
                break
            start = time.perf_counter()
            reference()
            middle = time.perf_counter()
            result = function()
            end = time.perf_counter()
            best_reference = min(best_reference, middle - start)
            best = min(best, end - middle)
    finally:
        if collecting:
            gc.enable()
    return Timing(best, best_reference, result)


def processor_time(function: Callable[[], object], effort: Effort) -> float:
    """Return the least processor time of a call, of all threads, in seconds."""
    best, began = float("inf"), time.perf_counter()
    for repeat in range(effort.most):
        if repeat >= effort.fewest and time.perf_counter() - began > effort.seconds:
            break
        start = time.process_time()
        function()
        best = min(best, time.process_time() - start)
    return best
