"""Axes of predictions that fit the data: a part of [0, 1], evenly or by log odds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from caldist._util.types import Vector
from caldist.errors import InvalidInput
from caldist.plots import _style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ScaleName = Literal["linear", "logit"]
SCALES: tuple[ScaleName, ScaleName] = ("linear", "logit")

# Lengths of a linear axis that begins at 0 or ends at 1; one that fits is not less than half full.
_LENGTHS = tuple(float(f"{m}e{power}") for power in range(-6, 0) for m in (1, 2, 5))
_TAIL = 1e-3  # of the mass beyond either end of an axis, which would otherwise be mostly empty
_SILENT, _TOLD = 0.1, 1e-5  # of the mass, and of the information, beyond an end of a logit axis
_ROOM = 2.0  # by how much an axis may become longer for what is drawn over the predictions
_LEAST = 1e-9  # the least odds that a logit axis shows
_SHORTEST = math.log(10)  # of a logit axis, in log odds
_LETTERS = 42  # of the labels of ticks, at most, with room between


@dataclass(frozen=True)
class Scale:
    """An axis of predictions from ``lower`` to ``upper``, and where each stands on it."""

    name: ScaleName = "linear"
    lower: float = 0.0
    upper: float = 1.0

    @property
    def is_whole(self) -> bool:
        """Whether it is the unit interval itself."""
        return self.name == "linear" and self.lower == 0 and self.upper == 1

    def place(self, prediction: Any) -> Vector:
        """Return where predictions stand, from 0 to 1; those beyond an end stand there."""
        v = np.asarray(prediction, dtype=np.float64)
        if self.is_whole:
            return v
        low, high = self._ends
        return np.asarray(np.clip((self._even(v) - low) / (high - low), 0, 1))

    def prediction(self, place: Vector) -> Vector:
        """Return what stands at places."""
        if self.is_whole:
            return place
        low, high = self._ends
        even = low + (high - low) * np.asarray(place)
        return even if self.name == "linear" else np.asarray(1 / (1 + np.exp(-even)))

    def slope(self, place: Vector) -> Vector:
        """Return by how much the place changes with the prediction."""
        low, high = self._ends
        if self.name == "linear":
            return np.full(np.shape(place), 1 / (high - low))
        v = self.prediction(place)
        return np.asarray(1 / ((high - low) * v * (1 - v)))

    def below(self, place: float) -> float:
        """Return the height, on upright axes of this scale, of a place below them."""
        return place if self.name == "logit" else self.lower + place * (self.upper - self.lower)

    @property
    def _ends(self) -> tuple[float, float]:
        return float(self._even(np.array(self.lower))), float(self._even(np.array(self.upper)))

    def _even(self, v: Vector) -> Vector:
        if self.name == "linear":
            return v
        v = np.clip(v, 1e-300, 1 - 1e-16)
        return np.asarray(np.log(v) - np.log1p(-v))

    # -- drawing ---------------------------------------------------------------------------------

    def square(self, ax: Axes, across: str, up: str) -> None:
        """Prepare axes for curves from the predictions to probabilities, with the diagonal."""
        _style.plain_axes(ax)
        ax.set(xlabel=across, ylabel=up)
        self.along(ax)
        if self.name == "logit":
            # Below 0 there is room for histograms: one unit is the height of the square.
            ax.set_yscale(
                "function",
                functions=(
                    lambda p: np.where(np.asarray(p) < 0, p, self.place(np.maximum(p, 0))),
                    lambda u: np.where(np.asarray(u) < 0, u, self.prediction(np.clip(u, 0, 1))),
                ),
            )
        self._ticks(ax.yaxis)
        ax.set_ylim(self.lower, self.upper)
        line = self.prediction(np.linspace(0, 1, 2 if self.name == "linear" else 65))
        ax.plot(line, line, color=_style.GREY, linewidth=0.8, zorder=1)
        ax.set_aspect("equal")

    def along(self, ax: Axes) -> None:
        """Make the level axis one of this scale."""
        if self.name == "logit":
            ax.set_xscale("function", functions=(self.place, self.prediction))
        self._ticks(ax.xaxis)
        ax.set_xlim(self.lower, self.upper)

    def _ticks(self, axis: Any) -> None:
        from matplotlib.ticker import NullLocator  # only drawing needs it

        if self.name == "linear":
            _style.unit_ticks(axis, self.lower, self.upper)
            return
        letters = _LETTERS // 2 if _style.has_few_ticks(axis) else _LETTERS
        ticks = _logit_ticks(self.lower, self.upper, letters)
        axis.set_ticks(ticks, [_label(v) for v in ticks])
        axis.set_minor_locator(NullLocator())


def _label(value: float) -> str:
    """Return a probability at a tick: 0.001 rather than a power, as far as that is short."""
    return f"{value:.6g}" if value == 0 or value >= 1e-4 else f"{value:.0e}".replace("e-0", "e-")


def _logit_ticks(lower: float, upper: float, letters: int) -> list[float]:
    """Return round probabilities between the ends: decades first, then their fifths and halves."""
    tails = [10.0**-power for power in range(9, 0, -1)]
    decades = [*tails, 0.5, *(1 - tail for tail in reversed(tails))]
    fine = sorted({m * tail for tail in tails for m in (1, 2, 5)} | {0.5})
    fine += [1 - tail for tail in reversed(fine) if tail < 0.5]
    for chosen in (fine, decades, decades[::2], decades[::3], decades[::4]):
        inside = [tick for tick in chosen if lower * (1 - 1e-9) <= tick <= upper * (1 + 1e-12)]
        if sum(len(_label(tick)) + 2 for tick in inside) <= letters:
            break
    return inside


def scale_of(
    name: ScaleName, prediction: Vector, mass: Vector, others: Sequence[Vector] = ()
) -> Scale:
    """Return the axis that fits predictions with masses, and as far as may be other probabilities.

    ``prediction`` does not decrease. Beyond either end there is at most a thousandth of the mass,
    which a few outliers among rare events would otherwise leave the axis to. A logit axis may end
    earlier, with up to a tenth of the mass beyond, if that has next to none of the information: a
    row tells v(1 − v) of its log odds, so that a long tail of predictions near 0 or 1 is as good
    as empty, and would leave the curve a corner of the axis.
    """
    low, high = _between(prediction, mass, _TAIL)
    if name == "logit":
        told = mass * prediction * (1 - prediction)
        if told.sum() > 0:
            ends, most = _between(prediction, told, _TOLD), _between(prediction, mass, _SILENT)
            low, high = max(low, min(ends[0], most[0])), min(high, max(ends[1], most[1]))
    return seen(name, low, high, others)


def _between(prediction: Vector, mass: Vector, tail: float) -> tuple[float, float]:
    """Return the predictions below and above which there is at most a share of the mass."""
    share = np.cumsum(mass)
    at = np.searchsorted(share, np.array([tail, 1 - tail]) * share[-1])
    low, high = prediction[at.clip(max=prediction.size - 1)].tolist()
    return low, high


def seen(name: ScaleName, low: float, high: float, others: Sequence[Vector] = ()) -> Scale:
    """Return the axis from ``low`` to ``high``, or a bit further where others are beyond."""
    found = _linear(low, high) if name == "linear" else _logit(low, high)
    room = _ROOM if name == "linear" else 10.0
    beyond = [part[part == part] for part in others]  # noqa: PLR0124 -- NaN
    values = np.concatenate([np.empty(0), *beyond])
    if values.size == 0 or found.is_whole:
        return found
    least, most = float(values.min()), float(values.max())
    if name == "linear":
        length = room * (found.upper - found.lower)
        if found.lower > 0:
            return _linear(max(min(low, least), 1 - length), 1.0)
        return _linear(0.0, min(max(high, most), length))
    return _logit(max(min(low, least), low / room), min(max(high, most), 1 - (1 - high) / room))


def _linear(low: float, high: float) -> Scale:
    for length in _LENGTHS:
        if high <= length:
            return Scale("linear", 0.0, length)
        if low >= 1 - length:
            return Scale("linear", 1 - length, 1.0)
    return Scale()


def _logit(low: float, high: float) -> Scale:
    low, high = min(max(low, _LEAST), 1 - 2 * _LEAST), max(min(high, 1 - _LEAST), 2 * _LEAST)
    ends = _round(low, -1), _round(high, 1)
    found = [math.log(v / (1 - v)) for v in ends]
    more = max(0.0, _SHORTEST - (found[1] - found[0])) / 2
    lower, upper = (1 / (1 + math.exp(-x)) for x in (found[0] - more, found[1] + more))
    return Scale("logit", lower, upper)


def _round(v: float, side: int) -> float:
    """Return the next probability below or above of 1, 2, 5 times a power of ten; 1 less such."""
    if v > 0.5:
        return 1 - _round(1 - v, -side)
    power = 10.0 ** math.floor(math.log10(v) + 1e-9)
    if side < 0:
        return max(m * power for m in (1, 2, 5) if m * power <= v * (1 + 1e-9))
    return min(m * power for m in (1, 2, 5, 10) if m * power >= v * (1 - 1e-9))


class OnAxis(Protocol):
    """What was made for an axis."""

    @property
    def scale(self) -> ScaleName:
        """Its kind."""
        ...

    @property
    def smallest(self) -> float:
        """Where it begins."""
        ...

    @property
    def largest(self) -> float:
        """Where it ends."""
        ...


def axis_of(model: OnAxis) -> Scale:
    """Return the axis that a curve was made for."""
    return Scale(model.scale, model.smallest, model.largest)


def scale_on(ax: Axes, name: ScaleName) -> Scale:
    """Return the scale of axes that :meth:`Scale.square` or :meth:`Scale.along` prepared."""
    found = Scale(name, *map(float, ax.get_xlim()))
    if (ax.get_xscale() == "linear") != (name == "linear"):
        remedy = "Make the models that share axes with the same scale."
        raise InvalidInput(argument="ax", reason=f"has another scale than {name!r}", remedy=remedy)
    return found


def together(scales: Sequence[Scale]) -> Scale:
    """Return the axis that has room for all of them."""
    names = {scale.name for scale in scales}
    if len(names) > 1:
        remedy = "Make all of them with the same scale."
        raise InvalidInput(argument="models", reason="have different scales", remedy=remedy)
    lower, upper = min(one.lower for one in scales), max(one.upper for one in scales)
    [name] = names
    if name == "linear" and lower > 0 and len({one.lower for one in scales}) > 1:
        return Scale(name, lower, 1.0)
    return Scale(name, lower, upper)
