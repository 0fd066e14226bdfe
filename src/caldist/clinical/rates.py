"""What is predicted on average, what is observed, and the factor between them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from caldist._util.numbers import outwards
from caldist._util.numbers import rate as percentage
from caldist._util.products import dot
from caldist._util.results import Result
from caldist.data.joint import Joint
from caldist.data.rows import Rows
from caldist.inference.intervals import Interval
from caldist.inference.limits import normal_quantile
from caldist.inference.sample import Units, units_of

_COMMON = 0.9  # from here on label 0 is the event whose rate a factor says something about
_NAME = "observed_over_expected"
_ROUNDED_AWAY = "rounding may have changed the mean to 0"


@dataclass(frozen=True)
class Rates(Result):
    """The mean prediction of a label, its frequency, and the ratio of the two.

    Attributes
    ----------
    label
        Whose rate it is: 1, or 0 where label 1 has nine tenths of the rows and of the predictions.
    predicted, observed
        The mean prediction of this label, and its frequency.
    ratio
        ``observed`` over ``predicted``, a :class:`caldist.inference.Interval`; its value is None
        where one of them is 0.
    """

    label: int
    predicted: float
    observed: float
    ratio: Interval

    def __str__(self) -> str:
        """Return the two rates, and by which factor predictions are too low or too high."""
        of = "" if self.label == 1 else " label 0 with"
        said = f"predicts{of} {percentage(self.predicted)} on average, observed "
        said += percentage(self.observed)
        words = self.lines[1]
        return f"{said}{':' if words.startswith('too') else ','} {words}"

    @property
    def lines(self) -> tuple[str, str]:
        """The two rates, and what lies between them, as they stand in a figure."""
        of = "" if self.label == 1 else "label 0: "
        rates = f"{of}predicted {percentage(self.predicted)}, observed {percentage(self.observed)}"
        return rates, self._between

    @property
    def _between(self) -> str:
        ratio, lower, upper = self.ratio.value, self.ratio.lower, self.ratio.upper
        if ratio is None:
            return self.ratio.note
        if self.ratio.note:
            [value] = factors(ratio)
            return f"{value} times as much (no interval: {self.ratio.note})"
        if lower > 1:
            value, low, high = factors(ratio, lower, upper)
            return f"too low by a factor of {value} ({low} to {high})"
        if upper < 1:
            value, low, high = factors(1 / ratio, 1 / upper, 1 / lower)
            return f"too high by a factor of {value} ({low} to {high})"
        value, low, high = factors(ratio, lower, upper)
        return f"{value} times as much ({low} to {high})"


def factors(value: float, *ends: float) -> list[str]:
    """Return a factor and its ends with as many decimals as tell it from 1, or from its ends."""
    apart = max([abs(value - 1), *(abs(end - value) for end in ends)])
    places = 4 if apart < 1e-4 else 1 - math.floor(math.log10(apart))
    places = max(places, 1 if value < 10 else 0)
    sides = (0, -1, 1)[: 1 + len(ends)]
    rounded = map(outwards, (value, *ends), [places] * 3, sides)
    return [f"{x:,.{places}f}" for x in rounded]


def rates_of(rows: Rows, confidence_level: float) -> Rates:
    """Return the rates of rows that were checked."""
    joint, units = rows.joint, units_of(rows)
    predicted, observed = means(joint)
    label = 0 if min(predicted, observed) >= _COMMON else 1
    if label == 0:
        predicted, observed = 1 - predicted, 1 - observed
    if predicted <= 0 or observed <= 0:
        never = "observed" if observed <= 0 else "predicted"
        ratio = no_ratio(None, confidence_level, f"label {label} is never {never}")
        return Rates(label, max(predicted, 0.0), max(observed, 0.0), ratio)
    return Rates(label, predicted, observed, ratio_of(joint, units, label, confidence_level))


def means(joint: Joint) -> tuple[float, float]:
    """Return the mean prediction and the frequency of label 1."""
    predicted = dot(joint.mass0 + joint.mass1, joint.prediction) / joint.total
    return predicted, float(joint.mass1.sum()) / joint.total


def no_ratio(value: float | None, confidence_level: float, note: str) -> Interval:
    """Return observed over expected without limits, and why."""
    return Interval(value, -math.inf, math.inf, confidence_level, measure=_NAME, note=note)


def ratio_of(joint: Joint, units: Units, label: int, confidence_level: float) -> Interval:
    """Return observed over expected, its ends made on the log scale; both means are above 0.

    Weights and clusters are in the standard error, and predictions are random too.
    """
    mean, rate = means(joint)
    prediction, at_label = units.prediction[units.place], units.label == label
    if label == 0:
        mean, rate, prediction = 1 - mean, 1 - rate, 1 - prediction
    error = units.standard_error(at_label / rate - prediction / mean)
    off = joint.radius
    if joint.grid is not None:
        # Cells know the mean of their rows but for the last digits; how much these differ counts.
        off = joint.grid.resolution
        error += joint.grid.scatter / mean
    if mean <= off:
        return no_ratio(rate / mean, confidence_level, _ROUNDED_AWAY)
    factor = math.exp(-normal_quantile((1 - confidence_level) / 2) * error)
    return Interval(
        value=rate / mean,
        lower=rate / (mean + off) / factor,
        upper=rate / (mean - off) * factor,
        confidence_level=confidence_level,
        method="normal",
        measure=_NAME,
        rounding=0.0 if joint.radius == 0 else None,
    )
