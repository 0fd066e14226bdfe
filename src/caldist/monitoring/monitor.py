"""``Monitor``: an alarm for calibration that may be looked at after every batch."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from caldist._util.brief import listed, shown_value
from caldist._util.locks import locked
from caldist._util.types import Vector
from caldist.data import validate
from caldist.data.joint import Joint
from caldist.errors import InvalidInput, InvalidType, answering
from caldist.monitoring import state_files
from caldist.monitoring.batch_names import BatchName, check_after, clean_name
from caldist.monitoring.batches import read_batch
from caldist.monitoring.mixtures import log_sum
from caldist.monitoring.state import Dependence, Settings, State
from caldist.monitoring.steps import Step, Steps, rejected, shares_by_name
from caldist.monitoring.streams import Stream


class Monitor:
    r"""Watch the calibration of a model batch by batch, with an anytime-valid alarm.

    It keeps sums, not rows. Under one of two hypotheses an e-value is a wealth that grows in the
    mean by nothing, at any batch, so it ever reaches 1/α with probability α at most:

    - **calibrated** (``tolerance=None``): E[y \| F, v] = v for every row, F being all that was
      known before it. Predictions may drift, depend on past labels and be tied.
    - **within tolerance**: from every batch on, the mean over rows of the batches' distances to
      calibration (ldCE of the law of their rows, given the past) stays at most ``tolerance``: in
      particular if that of each batch does. Rows of a batch are independent given the past.

    **What it means.** Without ``run_length`` the probability that it *ever* gives a false alarm is
    at most ``false_alarm_rate``; with it, ``run_length`` is the least mean number of batches until
    a false alarm, which finds changes sooner. An alarm stays until :meth:`reset`.

    **What is not valid.** Labels that enter as they arrive, positives first: let a row enter at a
    fixed age. Rows that share a shock: pass ``dependence="batches"``. Choosing tolerance, rate or
    sub-groups after looking. Batches should be cross-sections in time of 100 rows or more.

    **Cost.** O(rows + cells) a batch, whatever came before, and a state below 1 MiB after ten
    years of days. One thread at a time may update a monitor. Where the rows of a batch lie in
    several places, add up their joints, and pass the sum.

    Parameters
    ----------
    tolerance : float, optional
        The distance to calibration that is acceptable. A model that is used is never calibrated
        perfectly, so without a tolerance it alarms in the end.
    false_alarm_rate : float
        α, and the error of each end of the confidence sequence.
    run_length : float, optional
        The mean number of batches until a false alarm, instead of α for the alarm.
    by : sequence of str or int, optional
        The names of sub-groups. The alarm follows half the e-value of all rows and half the mean of
        those of the sub-groups; e-BH finds which of them are miscalibrated.
    dependence : "rows" or "batches"
        "batches" if the rows of a batch share a shock: then sums of whole batches are bet on, which
        is valid if these are symmetric about 0, given the past, for a calibrated model. With a
        tolerance the mean payoff of a batch is one bounded number, which needs no assumption and
        many batches.
    bits : int
        Batches are put on a grid of 2^bits cells; all rows together on at most 2^12.

    Attributes
    ----------
    tolerance, false_alarm_rate, run_length, by, dependence, bits
        As they were given.

    Examples
    --------
    >>> import caldist
    >>> demo = caldist.datasets.load_demo()
    >>> monitor = caldist.Monitor(tolerance=0.02)
    >>> for day in range(1, 31):  # from day 16 on another model predicts
    ...     model = "logistic_regression" if day <= 15 else "naive_Bayes"
    ...     rows = slice(day % 15, None, 15)
    ...     step = monitor.update(demo.y_true[rows], demo.y_prob[model][rows], batch=day)
    ...     if step.alarm:
    ...         break
    >>> step.batch, step.onset, next(iter(step.kind))
    (21, 17, 'slope')
    """

    _file: state_files.Version | None = None

    @answering
    def __init__(
        self,
        *,
        tolerance: float | None = None,
        false_alarm_rate: float = 0.05,
        run_length: float | None = None,
        by: Sequence[str | int] | None = None,
        dependence: Dependence = "rows",
        bits: int = 14,
    ) -> None:
        if tolerance is not None:
            tolerance = validate.check_limit("tolerance", tolerance)
        false_alarm_rate = validate.check_fraction("false_alarm_rate", false_alarm_rate)
        if run_length is not None:
            run_length = validate.check_positive("run_length", run_length)
            if run_length < 1:
                reason = "it is a number of batches, at least 1"
                raise InvalidInput(argument="run_length", value=run_length, reason=reason)
        validate.check_choice("dependence", dependence, ("rows", "batches"))
        Joint.empty(bits)  # checks it
        self._settings = Settings(
            tolerance, false_alarm_rate, run_length, _group_names(by), dependence, int(bits)
        )
        self._state = self._fresh(None)

    def _fresh(self, floor: BatchName | None) -> State:
        count = 1 + len(self.by)
        streams = tuple(Stream.empty(self.bits) for _ in range(count))
        return State([], floor, streams, (0.0,) * count, [])

    # -- taking batches ------------------------------------------------------------------------

    @answering
    def update(
        self,
        y_true: ArrayLike | Joint | Mapping[Any, Joint],
        y_prob: ArrayLike | None = None,
        *,
        batch: object,
        by: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        pos_label: object = None,
    ) -> Step:
        """Take a batch and say where the monitor stands.

        A batch that is refused leaves the monitor as it was. Batches without rows, or with one
        label only, are legal.

        Parameters
        ----------
        y_true : array-like of 0 and 1, Joint, or mapping from sub-group to Joint
            A joint stands for the rows of a batch; with sub-groups a joint of each, those without
            rows left out.
        y_prob : array-like in [0, 1]
            The predicted probability of label 1; left out with joints.
        batch : str, number or date
            What the batch is called: all of one kind, each larger than the one before.
        by : array-like, optional
            The sub-group of each row, where sub-groups were declared.
        sample_weight : array-like, optional
            Weights that were fixed before the labels were known. They count relative to the largest
            of the batch; from a joint relative to a bound of it, which costs evidence.
        pos_label : optional
            The value of ``y_true`` that counts as label 1, where labels are not 0 and 1.

        Returns
        -------
        Step
        """
        name = clean_name(batch)
        state = self._state
        if state.batches:
            check_after(name, state.batches[-1])
        elif state.floor is not None:
            check_after(name, state.floor, allow_equal=True)
        parts = read_batch(y_true, y_prob, sample_weight, pos_label, by, self.by, self.bits)
        streams = tuple(
            stream.updated(*part, by_batch=self._settings.by_batch)
            for stream, part in zip(state.streams, parts, strict=True)
        )
        rows = [part.grid.n_rows or 0 for part in parts]
        alarmed = bool(state.steps) and state.steps[-1].alarm
        names = [*state.batches, name]
        step, peaks = self._step(names, streams, state.peaks, rows, alarmed=alarmed)
        self._state = State(names, state.floor, streams, peaks, [*state.steps, step])
        return step

    def _step(
        self,
        names: Sequence[BatchName],
        streams: Sequence[Stream],
        peaks: Sequence[float],
        rows: Sequence[int],
        *,
        alarmed: bool,
    ) -> tuple[Step, tuple[float, ...]]:
        """Return the step after a batch and the largest log e-values so far."""
        evidence = [self._evidence(stream) for stream in streams]
        logs = [found.ever for found in evidence]
        followed, calibrated = (
            [found.followed for found in evidence],
            [found.calibrated for found in evidence],
        )
        overall = _averaged(logs)
        highest = tuple(map(max, peaks, (overall, *logs[1:])))
        follows = _averaged(followed)
        parts = [
            self._part(names, stream, found, count)
            for stream, found, count in zip(streams, evidence, rows, strict=True)
        ]
        found = rejected(logs[1:], self.false_alarm_rate) if self.by else []
        by = {
            name: Step(
                alarm=is_found,
                pvalue=_pvalue(peak),
                log_e_value=log,
                log_e_calibrated=other,
                **part,
            )
            for name, is_found, peak, log, other, part in zip(
                self.by, found, highest[1:], followed[1:], calibrated[1:], parts[1:], strict=True
            )
        }
        reached = follows if self.run_length is not None else highest[0]
        step = Step(
            alarm=alarmed or reached >= self.log_threshold,
            pvalue=_pvalue(highest[0]),
            log_e_value=follows,
            log_e_calibrated=_averaged(calibrated),
            by=by,
            **parts[0],
        )
        return step, highest

    def _evidence(self, stream: Stream) -> _Evidence:
        values = stream.calibrated_values(by_batch=self._settings.by_batch)
        ever = calibrated = stream.value_of(values)
        if self.tolerance is not None:
            values = stream.distance_values(self.tolerance)
            ever = stream.value_of(values)
        followed = ever if self.run_length is None else log_sum(values)
        return _Evidence(ever, followed, calibrated, int(values.argmax()))

    def _part(
        self, names: Sequence[BatchName], stream: Stream, evidence: _Evidence, rows: int
    ) -> dict[str, Any]:
        """Return the fields of a step that follow from one stream."""
        fit = stream.fit
        rate = self.false_alarm_rate
        return {
            "batch": names[-1],
            "value": None if fit is None else fit.lower,
            "lower": stream.lower(rate),
            "upper": None if self._settings.by_batch else stream.upper(rate),
            "onset": None if fit is None else names[int(stream.start[evidence.window])],
            "kind": {} if fit is None else shares_by_name(stream.shares(evidence.window)),
            "n_rows": rows,
        }

    def reset(self, batch: object) -> Self:
        """Forget all batches, after a recalibration: from ``batch`` on the model is watched anew.

        Settings stay, and with them a new guarantee begins. Batches before that are refused
        from now on.

        Parameters
        ----------
        batch : str, number or date
            The name of the first batch to come; larger than the name of the last one.
        """
        name = clean_name(batch)
        if self._state.batches:
            check_after(name, self._state.batches[-1])
        elif self._state.floor is not None:
            check_after(name, self._state.floor, allow_equal=True)
        self._state = self._fresh(name)
        return self

    # -- reading it ----------------------------------------------------------------------------

    @property
    def tolerance(self) -> float | None:
        """The distance to calibration that is acceptable."""
        return self._settings.tolerance

    @property
    def false_alarm_rate(self) -> float:
        """The probability of ever a false alarm."""
        return self._settings.false_alarm_rate

    @property
    def run_length(self) -> float | None:
        """The mean number of batches until a false alarm, if that is what was asked for."""
        return self._settings.run_length

    @property
    def by(self) -> tuple[str | int, ...]:
        """The sub-groups."""
        return self._settings.by

    @property
    def dependence(self) -> Dependence:
        """What of a batch may depend on each other."""
        return self._settings.dependence

    @property
    def bits(self) -> int:
        """The number of bits of the grid that batches are put on."""
        return self._settings.bits

    @property
    def log_threshold(self) -> float:
        """What ``log_e_value`` must reach for an alarm."""
        return math.log(self.run_length or 1 / self.false_alarm_rate)

    @property
    def steps(self) -> Steps:
        """The steps since the monitor was made or reset."""
        return Steps(self._state.steps)

    @property
    def last_batch(self) -> BatchName | None:
        """The name of the last batch; None before the first."""
        return self._state.batches[-1] if self._state.batches else None

    @property
    def since(self) -> BatchName | None:
        """The name given to the last reset, before which batches are refused; None without one."""
        return self._state.floor

    @property
    def joint(self) -> Joint:
        """All rows since the monitor was made or reset, on a grid: weights as they were counted."""
        return self._state.streams[0].joint

    @property
    def joints(self) -> dict[str | int, Joint]:
        """All rows of each sub-group."""
        return {
            name: stream.joint
            for name, stream in zip(self.by, self._state.streams[1:], strict=True)
        }

    def curve(self, group: str | int | None = None) -> tuple[Vector, Vector]:
        """Return predictions and the frequency of label 1 that is likely at each, since the onset.

        The average of all experts, each counted by what it gained since the onset of the last
        step: where the model errs, and how. A diagnosis without a guarantee.

        Parameters
        ----------
        group : str or int, optional
            A sub-group; all rows by default.
        """
        if group is not None and group not in self.by:
            reason = f"the monitor knows {list(self.by)}"
            raise InvalidInput(argument="group", value=group, reason=reason)
        number = 0 if group is None else 1 + self.by.index(group)
        stream = self._state.streams[number]
        if stream.fit is None:
            raise InvalidInput(
                argument="group" if number else "monitor",
                reason="has seen no rows yet, so there is no curve",
                remedy="Update the monitor first.",
            )
        return stream.curve(self._evidence(stream).window)

    def __repr__(self) -> str:
        parts = [f"{len(self._state.batches)} batches"]
        if self.last_batch is not None:
            parts.append(f"last {shown_value(self.last_batch)}")
        parts += [
            f"{name}={shown_value(value)}"
            for name, value in vars(self._settings).items()
            if value not in {None, ()} and (name, value) not in _DEFAULTS
        ]
        return listed("Monitor", parts)

    # -- keeping it ----------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to a ``.npz`` file, whole or not at all.

        Two processes that load a file, update it and save it would lose the batches of one: a file
        that this monitor was loaded from, or saved to, is not overwritten if it has changed since.
        The lock, an empty file ``.NAME.lock``, stays next to it.

        Raises
        ------
        FileExistsError
            If the file has changed since: load it again, and update that.
        BlockingIOError
            If another process is saving to it, or ``caldist monitor`` is running.
        """
        with locked(Path(path)):
            self._save(path)

    def _save(self, path: str | os.PathLike[str]) -> None:
        """Write to a file whose lock is held."""
        self._file = state_files.save(path, self._settings, self._state, self._file)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Monitor:
        """Read what :meth:`save` wrote: the monitor goes on to the bit as the saved one would.

        A damaged or foreign file is an :class:`caldist.InvalidInput`.
        """
        result = cls.__new__(cls)
        # Before the content is read: if that is changed in between, saving is refused.
        result._file = state_files.Version.of(path)  # noqa: SLF001 -- its own
        result._settings, result._state = state_files.load(path)  # noqa: SLF001
        return result


_DEFAULTS = (("false_alarm_rate", 0.05), ("dependence", "rows"), ("bits", 14))


@dataclass(frozen=True)
class _Evidence:
    """Log e-values of a stream, and the window that they owe most to."""

    ever: float
    followed: float
    calibrated: float
    window: int


def _averaged(logs: Sequence[float]) -> float:
    """Return the log of half of all rows' value and half the mean of the sub-groups' values."""
    if len(logs) == 1:
        return logs[0]
    groups = np.asarray(logs[1:]) - math.log(len(logs) - 1)
    return float(np.logaddexp(logs[0], log_sum(groups)) - math.log(2))


def _pvalue(peak: float) -> float:
    return math.exp(-peak) if peak > 0 else 1.0


def _group_names(by: object) -> tuple[str | int, ...]:
    if by is None:
        return ()
    if isinstance(by, str | bytes | Mapping) or not hasattr(by, "__iter__"):
        raise InvalidType(
            argument="by",
            value=by,
            reason="it must be a sequence of the names of all sub-groups",
            remedy="For example by=('north', 'south').",
        )
    names = [name.item() if hasattr(name, "item") else name for name in by]
    for at, name in enumerate(names):
        if isinstance(name, bool) or not isinstance(name, str | int):
            reason = "a sub-group is named by a string or an integer"
            raise InvalidType(argument="by", index=at, value=name, reason=reason)
        if name in names[:at]:
            reason, remedy = "it was listed before", "Name each sub-group once."
            raise InvalidInput(argument="by", index=at, value=name, reason=reason, remedy=remedy)
    if not names:
        remedy = "Leave it out, or name the sub-groups."
        raise InvalidInput(argument="by", reason="is empty", remedy=remedy)
    return tuple(names)
