"""The verdict about a model of several classes, in plain words."""

from __future__ import annotations

from collections.abc import Sequence

from caldist._util.numbers import chance as in_words
from caldist._util.numbers import down, number, percent, up
from caldist.reporting.model import ClassReport, ClassTestReport
from caldist.reporting.verdict import LEVEL, readable

CONFIDENCE = (
    "Confidences are a question of their own: whether the probability of the most probable class "
    "can be taken as it is. The answer bounds nothing about the whole row of probabilities, in "
    "either direction."
)
BLIND = (
    "Every class and every group of classes can be calibrated by itself and the whole not. The "
    "test has a statistic that sees that, kernel_ce; the bars per class do not."
)
_NOTHING = 1e-9  # lower limits below are called none
DIGITS = 4  # of the shares of classes, which may be many and small
_NAMED = 3  # classes that are named in the verdict


def class_verdict(
    value: float,
    noise: float | None,
    limits: tuple[float | None, float | None],
    pvalue: float | None,
    tests: Sequence[ClassTestReport],
    classes: Sequence[ClassReport],
    confidence_level: float,
    least_pvalue: float = 0.0,
) -> str:
    """Say how far from calibrated a model is, beside what chance shows, and which classes err.

    ``limits`` are those of the population's distance; ``classes`` has the worst first;
    ``least_pvalue`` is the smallest one that the draws can give.
    """
    beside = "" if noise is None else f"; calibrated predictions would show about {number(noise)}"
    said = [f"On these rows the classwise distance to calibration is {number(value)}{beside}."]
    said += _population(limits, confidence_level)
    found = [line for line in classes if line.lower is not None and line.lower > _NOTHING]
    if pvalue is not None:
        chance = f"({in_words(pvalue, least_pvalue)})"
        said.append(
            f"It is not perfectly calibrated {chance}."
            if pvalue < LEVEL
            else f"The test of perfect calibration does not tell it from chance {chance}."
            if found or (limits[0] is not None and limits[0] > _NOTHING)
            else f"The data are compatible with perfect calibration {chance}."
        )
    if found:
        said.append(_worst(found))
    elif pvalue is not None and pvalue < LEVEL:
        said.append(_nowhere(tests))
    return " ".join(said)


def _population(limits: tuple[float | None, float | None], level: float) -> list[str]:
    lower, upper = limits
    if lower is None:
        return []
    sure = f"With {percent(level)} confidence"
    if lower <= _NOTHING:
        most = "" if upper is None else f", and at most {up(upper)} has to"
        nothing = "nothing shows that probability mass has to move in the population"
        return [f"{sure} {nothing}{most}."]
    most = "" if upper is None else f" and at most {up(upper)}"
    moves = "has to move before the population's predictions are calibrated"
    mass = "of each row's probability mass, on average,"
    return [f"{sure} at least {down(lower)}{most} {mass} {moves}."]


def _worst(found: Sequence[ClassReport]) -> str:
    named = [
        f"{readable(line.name)} ({number(line.share)}, {_at_least(line)}{_direction(line)})"
        for line in found[:_NAMED]
    ]
    *most, last = named
    listed = f"{', '.join(most)} and {last}" if most else last
    more = len(found) - len(named)
    others = f"; {more:,} more stand out" if more else ""
    word = "class" if len(named) == 1 else "classes"
    return f"Beyond chance {'is' if len(named) == 1 else 'are'} {word} {listed}{others}."


def _at_least(line: ClassReport) -> str:
    return f"at least {down(line.lower or 0.0, DIGITS)} in the population"


def _direction(line: ClassReport) -> str:
    """Say whether a class is predicted too often, where that is most of its error."""
    if abs(line.mean_residual) < line.share:  # half of its distance: the rest is elsewhere
        return ""
    often = "rarely" if line.mean_residual > 0 else "often"
    return f", predicted too {often}"


def _nowhere(tests: Sequence[ClassTestReport]) -> str:
    apart = {test.name: test.pvalue for test in tests}
    if apart.get("classwise_smooth_ce", 0.0) >= LEVEL > apart.get("kernel_ce", 1.0):
        return (
            "No class stands out by itself: the errors may cancel in every class, as a rotation of "
            "the probabilities does."
        )
    return "The data do not show which classes err."
