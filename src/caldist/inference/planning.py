"""How many rows an interval of a given width needs, before any row is seen: proved, and usual."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from caldist._util.results import Result
from caldist._util.types import Vector
from caldist.data import validate
from caldist.data.rows import Rows
from caldist.errors import InvalidInput, answering
from caldist.inference.intervals import interval_of
from caldist.inference.resampling import Resampler
from caldist.kernels.loader import COMPILED
from caldist.measures.base import Measure, Worst
from caldist.measures.registry import all_measures, find

_MOST_ROWS = 2**53
_SIMULATED = (1_000, 4_000) if COMPILED else (200, 200)  # rows of the first sample, and the most
_SAMPLES = 30 if COMPILED else 5
_STEPS = 3
_SHARE = 0.9  # of the intervals that are at most as wide
_EVEN, _GIVEN = "spread evenly over [0, 1]", "like those given"
_LABELS = "calibrated or twice as far from their mean as they should be"


@answering
def guaranteed_width(
    *, measure: str | Measure[Any] = "smooth_ce", n_rows: int, confidence_level: float = 0.95
) -> float:
    r"""Return how wide the proved interval of a measure is, for any data of this many rows.

    With probability at least the confidence level 1 - δ, whatever the distribution,

    .. math:: T_n - \frac{a}{\sqrt n} - t \;\le\; T \;\le\; T_n + t, \qquad
              t = b \sqrt{\frac{\ln(2/\delta)}{2n}}

    where :math:`T_n` is the measure of n independent rows and T the population's. The width is the
    distance of the two ends, :math:`a/\sqrt n + 2t`, and never more than 1, because all these
    measures lie in [0, 1].

    **What it means.** A promise made before the data are seen. The interval computed from data,
    :func:`caldist.confidence_interval`, is usually several times narrower: that is what
    :func:`caldist.inference.sample_size` calls practical.

    **Why it holds.** Replacing a row changes :math:`T_n` by at most b/n, so it is within t of its
    mean on either side (McDiarmid). The mean is never below T, because the measures are convex,
    and at most :math:`a/\sqrt n` above it: a is 1 for ``kernel_ce``, √(1 + 1/w) for
    ``random_interval_ce`` with bins of width w = 0.1. There b = 2. The Brier score is a mean of
    numbers in [0, 1]: a = 0 and b = 1. For ``smooth_ce`` and ``lower_distance`` a = 0 and b = 2:
    the functions whose largest mean they are have a variation of at most 2 along the outcomes, set
    out on a line, so both are off by at most twice the Kolmogorov distance of the sample
    (Dvoretzky, Kiefer, Wolfowitz; Massart).

    **Cost.** None.

    Parameters
    ----------
    measure : measure or its name
        ``smooth_ce``, ``kernel_ce``, ``lower_distance``, ``random_interval_ce`` or
        ``brier_score``.
    n_rows : int
        How many independent rows of equal weight there will be.
    confidence_level : float

    Returns
    -------
    float

    See Also
    --------
    sample_size : the inverse, with what is enough in practice beside it.

    Examples
    --------
    >>> import caldist
    >>> round(caldist.inference.guaranteed_width(measure="smooth_ce", n_rows=10_000), 4)
    0.0543
    >>> round(caldist.inference.guaranteed_width(measure="brier_score", n_rows=10_000), 4)
    0.0272
    """
    worst = _worst(measure)
    n_rows = validate.check_count("n_rows", n_rows)
    confidence_level = validate.check_fraction("confidence_level", confidence_level)
    return _width(worst, n_rows, confidence_level)


@dataclass(frozen=True)
class SampleSize(Result):
    """How many rows an interval of a given width needs; see :func:`caldist.inference.sample_size`.

    Attributes
    ----------
    practical
        With so many rows nine of ten intervals are at most this wide, for data like ``law``:
        found by simulation, and rounded up to two digits.
    proved
        With so many rows the proved interval is at most this wide, whatever the data are.
    width, measure, confidence_level
        What was asked for.
    law
        The data that ``practical`` speaks of, in words.
    """

    practical: int
    proved: int
    width: float
    measure: str
    confidence_level: float
    law: str

    def __index__(self) -> int:
        """Return the practical number, for ``int`` and ``range``."""
        return self.practical

    def __str__(self) -> str:
        level = f"{100 * self.confidence_level:g}%"
        return (
            f"About {self.practical:,} rows for a {level} interval of {self.measure} of width "
            f"{self.width:g}, for {self.law}; {self.proved:,} rows for a width that is proved for "
            "all data."
        )


@answering
def sample_size(
    *,
    measure: str | Measure[Any] = "smooth_ce",
    width: float,
    confidence_level: float = 0.95,
    y_prob: ArrayLike | None = None,
    rng: validate.Rng = 0,
) -> SampleSize:
    r"""Return how many rows make the interval of a measure at most this wide.

    **In practice**: the rows with which nine of ten intervals of
    :func:`caldist.confidence_interval` are at most this wide, whichever of two laws the labels
    follow: the predictions are calibrated, or twice as far from their mean as they should be,

    .. math:: P(y = 1 \mid v) = v \qquad\text{or}\qquad P(y = 1 \mid v) = \tfrac12(v + E v).

    The predictions are those in ``y_prob``, which need no labels, or else spread evenly over
    [0, 1]. Samples of both laws are drawn, the width of their intervals is taken (without
    replicates, which makes them a few percent wider if anything), and the number of rows is moved
    until the width is met; beyond 4,000 rows, where that would take long, the width is taken to
    fall like :math:`1/\sqrt n`, as it does for every law.

    **Proved**: the least n whose :func:`caldist.inference.guaranteed_width` is at most ``width``.
    It holds whatever the data are, for the interval that ``method="finite_sample"`` makes.

    **What it means.** Plan with ``practical``, and promise no more than ``proved``. Of a model that
    is farther from calibrated than the second law intervals may be wider, by up to a third as a
    rule. Rare labels make them narrower: pass ``y_prob``. ``width`` is the distance from the
    interval's lower end to its upper one; of a calibrated model the lower end is 0.

    **Cost.** Below a second; some seconds for ``lower_distance``.

    Parameters
    ----------
    measure : measure or its name
        ``smooth_ce``, ``kernel_ce``, ``lower_distance``, ``random_interval_ce`` or
        ``brier_score``.
    width : float
        The wanted width, between 0 and 1.
    confidence_level : float
    y_prob : array-like in [0, 1], optional
        Predictions of the model for rows like those to come. Samples are drawn from them.
    rng : int, numpy.random.Generator or None
        For the simulation. The same number each time; None draws a fresh seed.

    Returns
    -------
    SampleSize

    See Also
    --------
    guaranteed_width : the inverse of ``proved``, and the bound itself.

    Examples
    --------
    >>> import caldist
    >>> found = caldist.inference.sample_size(measure="smooth_ce", width=0.05)
    >>> found.proved
    11805
    >>> 800 < found.practical < 1600
    True
    >>> predicted = [0.01, 0.02, 0.05]
    >>> rare = caldist.inference.sample_size(measure="smooth_ce", width=0.05, y_prob=predicted)
    >>> rare.practical < found.practical / 3
    True
    """
    worst = _worst(measure)
    width = validate.check_fraction("width", width)
    confidence_level = validate.check_fraction("confidence_level", confidence_level)
    prediction = None if y_prob is None else validate.probabilities(y_prob)
    generator = validate.generator(rng)
    proved = _proved(worst, width, confidence_level)
    chosen = find(measure)
    law = f"predictions {_EVEN if prediction is None else _GIVEN}, {_LABELS}"
    practical = min(proved, _practical(chosen, width, confidence_level, prediction, generator))
    return SampleSize(practical, proved, width, str(chosen), confidence_level, law)


def _proved(worst: Worst, width: float, confidence_level: float) -> int:
    """Return the least number of rows whose proved width is at most the one that is wanted."""
    root = _constant(worst, confidence_level) / width
    if root > math.sqrt(_MOST_ROWS):
        raise InvalidInput(
            argument="width",
            value=width,
            reason="that needs more rows than can be counted exactly, 2^53",
            remedy="Ask for a larger width.",
        )
    n = max(1, math.ceil(root**2))
    # The formula may be off by one row, because the root is rounded.
    while n > 1 and _width(worst, n - 1, confidence_level) <= width:
        n -= 1
    while _width(worst, n, confidence_level) > width:
        n += 1
    return n


def _practical(
    measure: Measure[Any],
    width: float,
    confidence_level: float,
    prediction: Vector | None,
    rng: np.random.Generator,
) -> int:
    """Return how many rows make nine of ten intervals at most so wide, up to two digits."""
    rows = _SIMULATED[0]
    needed = float(rows)
    for _ in range(_STEPS):
        reached = _usual_width(measure, rows, confidence_level, prediction, rng)
        needed = max(1.0, rows * (reached / width) ** 2)
        rows = min(max(math.ceil(needed), _SIMULATED[0] // 10), _SIMULATED[1])
    unit = int(10 ** max(0, math.floor(math.log10(needed)) - 1))
    return math.ceil(needed / unit) * unit


def _usual_width(
    measure: Measure[Any],
    rows: int,
    confidence_level: float,
    prediction: Vector | None,
    rng: np.random.Generator,
) -> float:
    """Return the width that nine of ten intervals have at most, for the worse one of two laws."""
    widths: tuple[list[float], list[float]] = ([], [])
    resampler = Resampler.of(0, n_resamples=1)  # for folds: nothing is resampled
    for _ in range(_SAMPLES):
        v = rng.random(rows) if prediction is None else rng.choice(prediction, rows)
        chance = rng.random(rows)
        for found, truth in zip(widths, (v, (v + v.mean()) / 2), strict=True):
            data = Rows.of(chance < truth, v)
            interval = interval_of(data, measure, confidence_level, resampler, "cross_fit")
            found.append(interval.upper - interval.lower)
    return max(float(np.quantile(found, _SHARE)) for found in widths)


def _worst(measure: object) -> Worst:
    """Return what is proved of a measure for every population; of a norm by its own constants."""
    known = [m.name for m in all_measures().values() if m.facts.worst is not None]
    chosen = find(measure, among=known)
    if chosen.facts.worst is None:
        raise InvalidInput(
            argument="measure",
            value=chosen.name,
            reason="no bounds of it are proved that hold for every distribution",
            remedy=f"Choose one of {', '.join(known)}.",
        )
    if not chosen.is_norm:
        return chosen.facts.worst
    norm = chosen.norm(np.empty(0))
    noise = norm.noise if chosen.facts.worst.bias else 0.0
    return Worst(noise, 2 * norm.bound)


def _constant(worst: Worst, confidence_level: float) -> float:
    """Return the width times √n."""
    tail = math.sqrt(math.log(2 / (1 - confidence_level)) / 2)
    return worst.bias + 2 * worst.reach * tail


def _width(worst: Worst, n_rows: int, confidence_level: float) -> float:
    return min(1.0, _constant(worst, confidence_level) / math.sqrt(n_rows))
