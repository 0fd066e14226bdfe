"""``Step``: what a monitor says after a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from caldist._util.escaping import for_line
from caldist._util.frames import frame
from caldist._util.numbers import chance, least, most
from caldist._util.results import Result
from caldist.monitoring.batch_names import BatchName
from caldist.monitoring.experts import FAMILIES


@dataclass(frozen=True)
class Step(Result):
    """What :meth:`caldist.Monitor.update` returns.

    Attributes
    ----------
    batch
        The name of the batch.
    alarm
        Whether the threshold has been passed, at this batch or one before. Of a sub-group: whether
        it is among those that are found at this batch (e-BH), with at most ``false_alarm_rate`` of
        the found ones wrong in the mean.
    pvalue
        The anytime-valid p-value, 1 over the largest e-value so far: it may be looked at after
        every batch.
    log_e_value
        The logarithm of what the alarm follows: the e-value against calibration or, with a
        tolerance, against a distance within it; with ``run_length`` the sum over all windows.
    log_e_calibrated
        The logarithm of the e-value against perfect calibration, whatever the alarm follows.
    value
        The lower distance to calibration of all rows so far; None before the first row.
    lower, upper
        The confidence sequence of the distance: with probability 1 - ``false_alarm_rate`` the
        lower end stays below the mean distance of the batches at all of them, and as often the
        upper end above the distance, if rows are independent and of one law. ``upper`` is None for
        ``dependence="batches"``.
    onset
        The name of the batch since which it is worst: an estimate, to be read after an alarm.
    kind
        What the deviation since then looks like: shares of "level", "slope", "wave" and "local",
        the largest first. A diagnosis without a guarantee.
    n_rows
        The rows of this batch.
    by
        The step of each sub-group; empty without sub-groups.
    """

    batch: BatchName
    alarm: bool
    pvalue: float
    log_e_value: float
    log_e_calibrated: float
    value: float | None
    lower: float
    upper: float | None
    onset: BatchName | None
    kind: Mapping[str, float]
    n_rows: int
    by: Mapping[Any, Step] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain Python values, ready for JSON; dates in ISO format."""
        content = super().to_dict()
        for name in ("batch", "onset"):
            if hasattr(content[name], "isoformat"):
                content[name] = content[name].isoformat()
        return content

    def _line(self) -> dict[str, Any]:
        """Return one line of a frame: names as they are, the likeliest kind."""
        line = {name: getattr(self, name) for name in _columns()}
        line["kind"] = next(iter(self.kind), None)
        return line

    def _lines(self) -> list[dict[str, Any]]:
        if not self.by:
            return [self._line()]
        return [{"group": None, **self._line()}] + [
            {"group": str(name), **part._line()}  # noqa: SLF001 -- of its own kind
            for name, part in self.by.items()
        ]

    def __str__(self) -> str:
        state = "ALARM" if self.alarm else "no alarm"
        upper = "" if self.upper is None else f" to {most(self.upper)}"
        value = "" if self.value is None else f", distance {self.value:.4g}"
        since = ""
        if self.alarm and self.onset is not None:
            since = f", since {self.onset} ({next(iter(self.kind), 'unknown')})"
        found = [str(name) for name, part in self.by.items() if part.alarm]
        groups = f"; in {', '.join(found)}" if found else ""
        pvalue = f"p = {self.pvalue:.3g}" if self.pvalue > 0 else chance(0.0)
        return for_line(
            f"{self.batch}: {state}, {pvalue}{value} ({least(self.lower)}{upper}), "
            f"{self.n_rows} rows{since}{groups}"
        )


def begun(steps: Sequence[Step]) -> BatchName | None:
    """Return since when there is an alarm, as it was estimated when the alarm began.

    Later estimates may come after the alarm: the evidence is then largest since a later batch.
    Without an alarm it is what the last step says.
    """
    alarmed = [step for step in steps if step.alarm] if steps[-1].alarm else []
    return (alarmed or steps[-1:])[0].onset


def _columns() -> list[str]:
    return [item.name for item in fields(Step) if item.name != "by"]


class Steps(Result, Sequence[Step]):
    """The steps of a monitor in their order, read as other results are.

    Examples
    --------
    >>> import caldist
    >>> monitor = caldist.Monitor()
    >>> step = monitor.update([0, 1], [0.2, 0.7], batch=1)
    >>> len(monitor.steps), monitor.steps[-1] == step
    (1, True)
    """

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = tuple(steps)

    def __len__(self) -> int:
        return len(self._steps)

    def __getitem__(self, at: Any) -> Any:
        """Return a step, or those of a slice."""
        return Steps(self._steps[at]) if isinstance(at, slice) else self._steps[at]

    def __eq__(self, other: object) -> bool:
        return self._steps == other._steps if isinstance(other, Steps) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def to_dict(self) -> dict[str, Any]:
        """Return the steps as plain Python values, ready for JSON."""
        return {"steps": [step.to_dict() for step in self._steps]}

    def to_frame(self, library: str = "pandas") -> Any:
        """Return a data frame with a line for each step, or for each of its sub-groups too.

        Parameters
        ----------
        library : "pandas" or "polars"
            What the data frame is made by.
        """
        if not self._steps:
            return frame({name: [] for name in _columns()}, library)
        return super().to_frame(library)

    def _lines(self) -> list[dict[str, Any]]:
        return [line for step in self._steps for line in step._lines()]  # noqa: SLF001

    def __str__(self) -> str:
        return "\n".join(map(str, self._steps)) if self._steps else "no steps yet"

    def __repr__(self) -> str:
        return f"Steps({len(self)} steps, {sum(step.alarm for step in self)} with an alarm)"


def shares_by_name(hundredths: Sequence[int]) -> dict[str, float]:
    """Return the shares of the families by their names, the largest first."""
    order = sorted(range(len(FAMILIES)), key=lambda at: -hundredths[at])
    return {FAMILIES[at]: hundredths[at] / 100 for at in order}


def rejected(log_e_values: Sequence[float], rate: float) -> list[bool]:
    """Return which hypotheses e-BH rejects: the k largest with e_(k) ≥ G/(rate k), k maximal."""
    values = np.asarray(log_e_values)
    order = np.argsort(-values, kind="stable")
    needed = np.log(values.size / rate) - np.log(np.arange(1, values.size + 1))
    reached = np.flatnonzero(values[order] >= needed)
    found = np.zeros(values.size, dtype=bool)
    found[order[: reached[-1] + 1 if reached.size else 0]] = True
    return [bool(one) for one in found]
