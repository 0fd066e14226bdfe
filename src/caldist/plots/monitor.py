"""A monitor: the e-value, the distance with its confidence sequence, and where the model errs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from caldist._util.brief import Brief
from caldist._util.types import Vector
from caldist.errors import InvalidInput, InvalidType, answering
from caldist.monitoring import Monitor, Step
from caldist.monitoring.steps import begun
from caldist.plots import _style
from caldist.plots.display import Columns, Display
from caldist.plots.inputs import thin

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LN10 = float(np.log(10))
_OTHERS = 3  # sub-groups that are shown by default
_TICKS = 6  # names of batches that fit below the axes
_STRIP = 0.14  # share of the last axes that shows where predictions are
_BINS = 64  # of predictions there


@dataclass(frozen=True, eq=False)
class MonitorCurve(Brief):
    """What a monitor says of all rows, or of a sub-group.

    Attributes
    ----------
    name
        That of the rows: "all rows", or the sub-group.
    batch
        The batches, as text.
    log_e_value, log_threshold
        The natural logarithm of what the alarm follows after each batch, and of what it must reach
        for an alarm; NaN for sub-groups, which e-BH finds together.
    value, lower, upper
        The lower distance of all rows so far and its confidence sequence; NaN where there is none.
    alarm
        Whether there is an alarm after each batch.
    tolerance
        The distance that is acceptable; None where none was given.
    onset
        The number of the batch since which there is an alarm, as it was estimated when the alarm
        began, or else since which it is worst; counted from 0. None without rows, or where the
        batch is not among those that are shown.
    prediction, error, share
        The frequency of label 1 less the prediction, as :meth:`caldist.Monitor.curve` has it since
        the onset of the last step, where there are predictions; and which share of all rows is
        there.
    since
        That batch.
    """

    name: str
    batch: tuple[str, ...]
    log_e_value: Vector
    log_threshold: float
    value: Vector
    lower: Vector
    upper: Vector
    alarm: NDArray[np.bool_]
    tolerance: float | None
    onset: int | None
    prediction: Vector
    error: Vector
    share: Vector
    since: str = ""


class MonitorDisplay(Display[MonitorCurve]):
    """A monitor over time, and what is wrong since when.

    Above, the e-value on a logarithmic axis with the threshold of the alarm, which is right at
    every look: the line may be read after each batch. With ``run_length`` it is the sum over all
    windows. In the middle the distance to calibration of all rows so far, its confidence sequence
    and the tolerance. The lower end holds for the mean distance of the batches, whatever changes;
    the upper end only as long as rows are independent and of one law. Below, by how much labels
    are more frequent than predicted since the onset, as the experts see it, and where predictions
    are. It is grey without an alarm, since it may then be chance. Onset and errors are estimates
    without a guarantee.

    **Cost.** A few milliseconds: a monitor keeps what is shown.

    Parameters
    ----------
    models : list of MonitorCurve
        All of the same batches. The confidence sequence is filled for the first.

    Attributes
    ----------
    axes_
        Once it is drawn: the three axes.

    Examples
    --------
    >>> import caldist
    >>> from caldist.plots import MonitorDisplay
    >>> demo = caldist.datasets.load_demo()
    >>> monitor = caldist.Monitor(tolerance=0.02)
    >>> for day in range(1, 31):  # from day 16 on another model predicts
    ...     model = "logistic_regression" if day <= 15 else "naive_Bayes"
    ...     rows = slice(day % 15, None, 15)
    ...     step = monitor.update(demo.y_true[rows], demo.y_prob[model][rows], batch=day)
    >>> display = MonitorDisplay.from_monitor(monitor)
    >>> shown = display.models[0]
    >>> shown.batch[shown.onset], bool(shown.alarm[-1])
    ('17', True)
    >>> import matplotlib.pyplot as plt; plt.close(display.figure_)
    """

    axes_: tuple[Axes, Axes, Axes]

    def __init__(self, models: Sequence[MonitorCurve]) -> None:
        super().__init__(models)
        for model in self.models[1:]:
            if model.batch != self.models[0].batch:
                raise InvalidInput(
                    argument="models",
                    reason=f"has {model.name!r} and {self.models[0].name!r}, which have different "
                    "batches",
                    remedy="Draw them on axes of their own.",
                )

    @classmethod
    @answering
    def from_monitor(
        cls,
        monitor: Monitor,
        *,
        groups: Sequence[str | int] | None = None,
        name: str = "all rows",
        ax: Axes | None = None,
    ) -> Self:
        """Draw a monitor.

        Parameters
        ----------
        monitor : Monitor
            With at least one batch.
        groups : list of sub-groups, optional
            Those to show beside all rows. By default the first three that are found at fault after
            the last batch.
        name : str
            What all rows are called in the figure.
        ax : matplotlib axes, optional
            Axes in a grid of subplots, whose place is divided among three.
        """
        return cls(monitor_curves(monitor, groups=groups, name=name)).plot(ax=ax)

    @answering
    def plot(self, *, ax: Axes | None = None) -> Self:
        """Draw the three parts, one below the other.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Axes in a grid of subplots, whose place is divided among three.
        """
        ax, _, alone = self._begin(ax, 5.6, 7.2)
        place = ax.get_subplotspec()
        if place is None:
            raise InvalidInput(
                argument="ax",
                reason="is not in a grid of subplots, so its place cannot be divided among three",
                remedy="Make it with figure.add_subplot() or plt.subplots().",
            )
        ax.set_axis_off()
        grid = place.subgridspec(3, 1)
        top = self.figure_.add_subplot(grid[0])
        middle = self.figure_.add_subplot(grid[1])
        bottom = self.figure_.add_subplot(grid[2])
        self.axes_ = (top, middle, bottom)
        self._draw_evidence(top)
        self._draw_distance(middle)
        self._draw_errors(bottom, alone=alone)
        return self

    def _draw_evidence(self, ax: Axes) -> None:
        """Draw e-values, the threshold and the first alarm."""
        from matplotlib.ticker import MaxNLocator  # only drawing needs it

        _style.plain_axes(ax)
        first = self.models[0]
        others: dict[str, Any] = {}
        for at, model in enumerate(self.models):
            self.lines_ += _line(ax, model.log_e_value / _LN10, at, model.name)
        threshold = first.log_threshold / _LN10
        others["threshold"] = ax.axhline(
            threshold, color=_style.RUST, linewidth=1.1, linestyle=(0, (5, 2)),
            label=f"alarm from {np.exp(first.log_threshold):.4g} on",
        )  # fmt: skip
        if first.alarm.any():
            when = int(np.argmax(first.alarm))
            (others["alarm"],) = ax.plot(
                [when], [max(first.log_e_value[when] / _LN10, threshold)], color=_style.RUST,
                marker="v", markersize=8, linestyle="none",
                label=f"first alarm: {_style.shown(first.batch[when])}",
            )  # fmt: skip
        ax.yaxis.set_major_locator(MaxNLocator(5, integer=True))
        ax.yaxis.set_major_formatter(lambda power, _: rf"$10^{{{power:.0f}}}$")
        ax.set_ylabel("e-value")
        _onset_line(ax, first)
        _batches(ax, first)
        _style.legend(ax, others.values())

    def _draw_distance(self, ax: Axes) -> None:
        """Draw the distance, its confidence sequence and the tolerance."""
        from matplotlib.ticker import MaxNLocator  # only drawing needs it

        _style.plain_axes(ax)
        first = self.models[0]
        others: dict[str, Any] = {}
        x = np.arange(len(first.batch))
        for at, model in enumerate(self.models):
            look = _style.model_style(at)
            keep = thin(x.astype(np.float64), model.lower)
            if at == 0:
                upper = np.where(np.isnan(model.upper), model.lower, model.upper)
                band = ax.fill_between(
                    x, model.lower, upper, color=_style.tint(ax, look["color"], 0.16),
                    linewidth=0, zorder=0, label="confidence sequence, if nothing changed",
                )  # fmt: skip
                others |= {} if np.isnan(model.upper).all() else {"ends": band}
            (lower,) = ax.plot(
                x[keep], model.lower[keep], color=look["color"], linewidth=0.9, linestyle=":",
                marker="." if x.size < 3 else "",
            )  # fmt: skip
            (value,) = _line(ax, model.value, at, model.name)
            if at == 0:
                others["value"] = _style.sample_of(value, "all rows so far")
                others["lower"] = _style.sample_of(lower, "at least this, at every look")
        if first.tolerance is not None:
            others["tolerance"] = ax.axhline(
                first.tolerance, color=_style.RUST, linewidth=1.1, linestyle=(0, (5, 2)),
                label=f"tolerance {first.tolerance:.4g}",
            )  # fmt: skip
        shown = [first.tolerance or 0.0, 1e-6]
        for model in self.models:
            ends = np.concatenate((model.value, model.lower, model.upper[-1:]))
            shown += ends[~np.isnan(ends)].tolist()
        ax.set_ylim(0, 1.15 * max(shown))
        ax.yaxis.set_major_locator(MaxNLocator(5))
        ax.set_ylabel("distance")
        _onset_line(ax, first)
        _batches(ax, first)
        _style.legend(ax, others.values(), models=False)

    def _draw_errors(self, ax: Axes, *, alone: bool) -> None:
        """Draw the errors since the onset, and below them where predictions are."""
        from matplotlib.ticker import MaxNLocator  # only drawing needs it

        _style.plain_axes(ax)
        ax.axhline(0, color=_style.GREY, linewidth=0.8, zorder=1)
        ax.set(xlabel="prediction", xlim=(0, 1))
        ax.set_ylabel("label − prediction", y=(1 + _STRIP) / 2)
        _style.unit_ticks(ax.xaxis)
        others: dict[str, Any] = {}
        for at, model in enumerate(self.models):
            keep = thin(model.prediction, model.error) if model.prediction.size else slice(0)
            x, y = model.prediction[keep], model.error[keep]
            if alone:
                others |= _filled(ax, model, x, y)
            look = _style.model_style(at)
            ax.plot(
                x, y, color=look["color"], linestyle=look["linestyle"], linewidth=1.4, zorder=3,
                marker=look["marker"] if x.size < 3 else "", markersize=4,
                label=_style.mark(_since(model)),
            )  # fmt: skip
        largest = max([float(np.abs(m.error).max()) for m in self.models if m.error.size] or [0.0])
        largest = max(1.15 * largest, 0.02)
        ax.set_ylim(-largest * (1 + _STRIP) / (1 - _STRIP), largest)
        ax.yaxis.set_major_locator(MaxNLocator(5, symmetric=True))
        first = self.models[0]
        if first.prediction.size:
            share, edge = np.histogram(
                first.prediction, bins=_BINS, range=(0, 1), weights=first.share
            )
            ax.stairs(
                _STRIP * 0.8 * share / share.max(), edge, fill=True, color="0.75",
                transform=ax.get_xaxis_transform(), zorder=0,
            )  # fmt: skip
        _style.legend(ax, others.values())

    def _columns(self, model: MonitorCurve) -> Columns:
        batches, places = len(model.batch), model.prediction.size
        gap, blank = np.full(places, np.nan), np.full(batches, np.nan)
        steps = {
            "log_e_value": model.log_e_value,
            "value": model.value,
            "lower": model.lower,
            "upper": model.upper,
        }
        return {
            "part": np.repeat(["step", "error"], (batches, places)),
            "batch": np.concatenate((np.array(model.batch, str), np.full(places, ""))),
            **{key: np.concatenate((values, gap)) for key, values in steps.items()},
            "prediction": np.concatenate((blank, model.prediction)),
            "error": np.concatenate((blank, model.error)),
            "share": np.concatenate((blank, model.share)),
        }


def monitor_curves(
    monitor: Monitor, *, groups: Sequence[str | int] | None = None, name: str = "all rows"
) -> list[MonitorCurve]:
    """Return what is shown of all rows and of some sub-groups; of those at fault by default."""
    if not isinstance(monitor, Monitor):
        reason = f"is of type {type(monitor).__name__}, but it must be a caldist.Monitor"
        raise InvalidType(argument="monitor", reason=reason)
    if not monitor.steps:
        remedy = "Update it first."
        raise InvalidInput(argument="monitor", reason="has no batches yet", remedy=remedy)
    last = monitor.steps[-1]
    if groups is None:
        groups = [group for group, step in last.by.items() if step.alarm][:_OTHERS]
    for at, group in enumerate(groups):
        if group not in monitor.by:
            known = ", ".join(map(repr, monitor.by)) or "none"
            reason = f"the monitor has {known}"
            raise InvalidInput(argument="groups", index=at, value=group, reason=reason)
    curves = [_curve(monitor, list(monitor.steps), name, None)]
    for group in groups:
        steps = [step.by[group] for step in monitor.steps]
        curves.append(_curve(monitor, steps, str(group), group))
    return curves


def _curve(
    monitor: Monitor, steps: Sequence[Step], name: str, group: str | int | None
) -> MonitorCurve:
    last, names, onset = steps[-1], [step.batch for step in steps], begun(steps)
    prediction: Vector = np.zeros(0)
    error, share = prediction, prediction
    if last.onset is not None:
        place, frequency = monitor.curve(group)
        joint = monitor.joint if group is None else monitor.joints[group]
        cell = (joint.prediction * (place.size - 1)).astype(np.intp)  # 1 has a cell of its own
        mass: Vector = np.zeros(place.size)
        np.add.at(mass, cell, np.add(*joint.normalized()))
        there = mass > 0  # elsewhere the curve says nothing
        prediction, share = place[there], mass[there]
        error = frequency[there] - prediction
    columns = {
        key: np.array([np.nan if (x := getattr(step, key)) is None else x for step in steps])
        for key in ("log_e_value", "value", "lower", "upper")
    }
    return MonitorCurve(
        name=name,
        batch=tuple(map(str, names)),
        **columns,
        log_threshold=monitor.log_threshold if group is None else np.nan,
        alarm=np.array([step.alarm for step in steps]),
        tolerance=monitor.tolerance,
        onset=names.index(onset) if onset in names else None,
        prediction=prediction,
        error=error,
        share=share,
        since="" if last.onset is None else str(last.onset),
    )


def _line(ax: Axes, values: Vector, at: int, name: str) -> list[Any]:
    look = _style.model_style(at)
    x = np.arange(values.size, dtype=np.float64)
    known = ~np.isnan(values)
    x, values = x[known], values[known]
    if values.size:
        keep = thin(x, values)
        x, values = x[keep], values[keep]
    every = max(1, x.size // 8)
    return ax.plot(x, values, markevery=every, zorder=3, label=_style.mark(name), **look)


def _onset_line(ax: Axes, model: MonitorCurve) -> None:
    if model.onset is not None and model.alarm[-1]:
        ax.axvline(model.onset, color=_style.GREY, linewidth=1.0, linestyle=(0, (1, 2)), zorder=1)
        ax.annotate(
            "onset", (model.onset, 1), xycoords=ax.get_xaxis_transform(), xytext=(-3, -2),
            textcoords="offset points", ha="right", va="top", fontsize="small",
            color=_style.GREY,
        )  # fmt: skip


def _batches(ax: Axes, model: MonitorCurve) -> None:
    """Put some names of batches below the axes."""
    count = len(model.batch)
    at = np.unique(np.rint(np.linspace(0, count - 1, min(count, _TICKS))).astype(int))
    longest = max(len(_style.shown(model.batch[k])) for k in at)
    if longest > 12 and at.size > 2:
        at = at[[0, -1]]
    ax.set_xticks(at, [_style.shown(model.batch[k]) for k in at])
    ax.set_xlim(-0.5, max(count - 0.5, 0.5))
    if longest > 6 and at.size > 2:
        ax.tick_params(axis="x", rotation=20)


def _filled(ax: Axes, model: MonitorCurve, x: Vector, y: Vector) -> dict[str, Any]:
    """Fill the errors, in colour if there is an alarm; return what the legend says."""
    if not model.alarm[-1]:
        words = "no alarm: it may be chance"
        filled = ax.fill_between(x, 0, y, color="0.82", linewidth=0, zorder=1, label=words)
        return {words: filled}
    others = {}
    for words, side, colour, hatch in (
        ("predicted too low", np.maximum(y, 0), _style.DARK, ""),
        ("predicted too high", np.minimum(y, 0), _style.RUST, "////"),
    ):
        if np.abs(side).max(initial=0) > 0.002:
            others[words] = ax.fill_between(
                x, 0, side, facecolor=_style.tint(ax, colour, 0.75), hatch=hatch,
                edgecolor="white", linewidth=0, label=words, zorder=2,
            )  # fmt: skip
    return others


def _since(model: MonitorCurve) -> str:
    if model.prediction.size == 0:
        return f"{model.name}: no rows"
    return model.name + (f" since {model.since}" if model.since else "")
