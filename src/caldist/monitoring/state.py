"""What a monitor was asked for, and all that it remembers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from caldist.monitoring.batch_names import BatchName
from caldist.monitoring.steps import Step
from caldist.monitoring.streams import Stream

Dependence = Literal["rows", "batches"]


@dataclass(frozen=True)
class Settings:
    """What is decided before the first batch; a guarantee is for these, and not for others."""

    tolerance: float | None
    false_alarm_rate: float
    run_length: float | None
    by: tuple[str | int, ...]
    dependence: Dependence
    bits: int

    @property
    def by_batch(self) -> bool:
        """Whether rows of a batch may depend on each other."""
        return self.dependence == "batches"


@dataclass(frozen=True)
class State:
    """All that a monitor remembers: what a file holds.

    ``batches`` are their names; ``floor`` is where the monitor was reset; ``peaks`` are the largest
    log e-values so far, of all rows and of each sub-group; ``streams`` the sums of all rows, then
    of each sub-group.
    """

    batches: list[BatchName]
    floor: BatchName | None
    streams: tuple[Stream, ...]
    peaks: tuple[float, ...]
    steps: list[Step]
