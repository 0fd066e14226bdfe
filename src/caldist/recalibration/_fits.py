r"""Monotone maps fitted to rows: six parametric ones, and windows of slopes around two of them.

A map is σ(g), linear in the scale s of its base between nodes. With A = log(v + ε₀) and
B = -log(1 - v + ε₁), A + B being a softened logit, the bases are

    identity v,  shift A + B + c,  temperature a(A + B),  sigmoid a(A + B) + c,  beta aA + bB + c

with a, b ≥ 0. The margins ε are either *sharp*, half of the least positive distance of a prediction
from 0, and from 1, or *soft*, half a row; the former suits scores that are honest about extremes,
the latter those that are not. Each end has a sharp margin of its own, because 1 - v is never below
1e-16 where v may be 1e-100: a common one would put an exact 1 far beyond all that is near it. A
window of slack ρ maximises the likelihood over all g with

    (s_{i+1} - s_i)/ρ ≤ g_{i+1} - g_i ≤ ρ (s_{i+1} - s_i),

so 1 is the base and infinity isotonic regression. All use Platt's targets: half a row and more of
the other label, so that nothing is fitted to be certain.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from caldist._util.cached import cached_property
from caldist._util.types import Integers, Vector
from caldist.inference.sample import Units
from caldist.kernels.loader import chain

CELLS = 4_096  # beyond which neighbouring predictions are merged: it changes no map by 0.001
_LEAST = 1e-300  # ε, so that its logarithm is a number
_FLAT = 1e-9  # steps of a fit below this are none
_ACTIVE = 1e-6  # relative to a bound, from where on a step is at it
_STEPS = 100  # of Newton's method; some five are needed
_PRECISION = 1e-11  # of the log-likelihood of a row: a step that gains less is the last
COMPARED = 1e-6  # the same for fits that are only compared; the last step leaves its square
_CURVATURE = 1e-12  # of a row, so that saturated ones can be divided by it


@dataclass(frozen=True)
class Candidate:
    """A base, and the slack around it: the factor by which slopes may differ from the base's."""

    base: str
    slack: float = 1.0

    @property
    def family(self) -> str:
        """The name of its family."""
        if self.slack == math.inf:
            return "isotonic"
        return "monotone" if self.slack > 1 else "sigmoid" if self.base == "soft" else self.base

    @property
    def name(self) -> str:
        """A name of its own."""
        base = {"soft": "soft sigmoid"}.get(self.base, self.base)
        if self.slack == 1:
            return base
        return "isotonic" if self.slack == math.inf else f"monotone {self.slack:g} around {base}"

    @property
    def parameters(self) -> int:
        """How many numbers its base has."""
        return {"identity": 0, "shift": 1, "temperature": 1, "beta": 3}.get(self.base, 2)


@dataclass(frozen=True)
class Counts:
    """Rows on increasing predictions: how many there are of each label, if weighted in effect."""

    prediction: Vector
    zeros: Vector
    ones: Vector

    @classmethod
    def of(cls, units: Units) -> Counts:
        """Count the rows; with weights as many as have the same standard error."""
        rows = 1 / float(units.squares.sum())
        ones = units.at_predictions(units.mass * units.label) * rows
        zeros = units.at_predictions(units.mass * (1 - units.label)) * rows
        return cls(units.prediction, zeros, ones)

    @cached_property
    def rows(self) -> Vector:
        """How many rows there are at each prediction."""
        return self.zeros + self.ones

    @cached_property
    def has_both(self) -> bool:
        """Whether both labels are there."""
        return bool(self.zeros.any() and self.ones.any())

    def cells(self, most: int) -> Integers:
        """Return the cell of each prediction: at most so many, about equal in rows."""
        size = self.prediction.size
        if size <= most:
            return np.arange(size)
        rows = self.rows
        middle = np.cumsum(rows) - rows / 2
        number = np.minimum(most - 1, middle / rows.sum() * most).astype(np.int64)
        return np.cumsum(np.diff(number, prepend=number[0]) > 0)

    def merged(self, cell: Integers) -> Counts:
        """Return the rows of each cell at their mean prediction."""
        if cell[-1] == cell.size - 1:
            return self
        rows, size = self.rows, int(cell[-1]) + 1
        zeros, ones = (
            np.bincount(cell, part, size).astype(np.float64) for part in (self.zeros, self.ones)
        )
        start = np.searchsorted(cell, np.arange(size))
        first = self.prediction[start]
        # Relative to the first of the cell, so that rounding keeps the order.
        offset = np.bincount(cell, rows * (self.prediction - first[cell]), size) / (zeros + ones)
        last = self.prediction[np.append(start[1:], cell.size) - 1]
        return Counts(np.minimum(first + offset, last), zeros, ones)

    def there(self) -> Counts:
        """Return those predictions that have rows."""
        some = self.rows > 0
        if some.all():
            return self
        return Counts(self.prediction[some], self.zeros[some], self.ones[some])

    @cached_property
    def softened(self) -> Vector:
        """Platt's targets, summed over the rows at each prediction."""
        ones, zeros = self.ones.sum(), self.zeros.sum()
        return np.asarray(self.ones * (ones + 1) / (ones + 2) + self.zeros / (zeros + 2))


@dataclass(frozen=True)
class Scale:
    """The scale of a base: a log(v + ε₀) - b log(1 - v + ε₁) + c."""

    margins: tuple[float, float]  # ε₀, ε₁
    low: float  # a
    high: float  # b
    offset: float  # c

    def __call__(self, v: Vector) -> Vector:
        """Return the scale of predictions."""
        low, high = logarithms(v, self.margins)
        return self.low * low + self.high * high + self.offset

    @property
    def is_flat(self) -> bool:
        """Whether it is constant: the ranking says nothing of the labels."""
        return self.low + self.high <= 0


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted map.

    Attributes
    ----------
    candidate
        What was fitted.
    scale
        That of its base; None for the identity.
    at, node, value
        Where the rows were, their scale, and what it became; None without slack.
    """

    candidate: Candidate
    scale: Scale | None
    at: Vector | None = None
    node: Vector | None = None
    value: Vector | None = None

    def __call__(self, v: Vector) -> Vector:
        """Return the mapped predictions."""
        if self.scale is None:
            return v
        x = self.scale(v)
        if self.node is None or self.value is None:
            return expit(x)
        beyond = np.minimum(x - self.node[0], 0.0) + np.maximum(x - self.node[-1], 0.0)
        return expit(np.interp(x, self.node, self.value) + beyond)

    @property
    def is_flat(self) -> bool:
        """Whether it is constant."""
        return self.scale is not None and self.scale.is_flat

    @cached_property
    def starts(self) -> Vector | None:
        """The least prediction of each block of nodes that move together; None for no blocks."""
        if self.at is None or self.node is None or self.value is None:
            return None
        step, base = np.diff(self.value), np.diff(self.node)
        slack = self.candidate.slack
        if slack == math.inf:
            free = step > _FLAT
        else:
            free = (step > base / slack * (1 + _ACTIVE)) & (step < base * slack * (1 - _ACTIVE))
        return self.at[np.concatenate(([True], free))]


def expit(x: Vector) -> Vector:
    """Return 1/(1 + e^-x)."""
    return np.asarray(1 / (1 + np.exp(-np.clip(x, -700, 700))))


def logarithms(v: Vector, margins: tuple[float, float]) -> tuple[Vector, Vector]:
    """Return A and B."""
    return np.log(v + margins[0]), -np.log((1 - v) + margins[1])


def soft_margins(counts: Counts) -> tuple[float, float]:
    """Return half a row at each end."""
    half = float(0.5 / (counts.rows.sum() + 1))
    return half, half


def sharp_margins(counts: Counts) -> tuple[float, float]:
    """Return half the least positive distance from 0, and from 1; never more than half a row."""
    v, (soft, _) = counts.prediction, soft_margins(counts)
    low, high = (
        max(_LEAST, min(soft, 0.5 * float(part.min(initial=1.0))))
        for part in (v[v > 0], 1 - v[v < 1])
    )
    return low, high


def fit_all(
    counts: Counts, candidates: Iterable[Candidate], precision: float = _PRECISION
) -> list[Fit]:
    """Fit candidates to the same rows; bases are fitted once, and fits start where others end.

    Of one base, those with less slack come first.
    """
    counts = counts.there()
    bases: dict[str, Scale | None] = {}
    last: dict[str, Vector] = {}
    found: list[Fit] = []
    for candidate in candidates:
        if candidate.base not in bases:
            bases[candidate.base] = fit_base(candidate.base, counts, found, precision)
        scale = bases[candidate.base]
        if scale is None or candidate.slack == 1 or not counts.has_both:
            found.append(Fit(candidate, scale))
            continue
        if candidate.slack == math.inf:
            found.append(_isotonic(candidate, scale, counts))
            continue
        if scale.is_flat:
            found.append(Fit(candidate, scale))
            continue
        node = scale(counts.prediction)
        start = last.get(candidate.base, node)
        value = fit_window(counts, node, candidate.slack, start, precision)
        last[candidate.base] = value
        found.append(Fit(candidate, scale, counts.prediction, node, value))
    return found


# -- bases ---------------------------------------------------------------------------------------


def fit_base(
    base: str, counts: Counts, known: Sequence[Fit] = (), precision: float = _PRECISION
) -> Scale | None:
    """Fit the numbers of a base, from those of a known fit on; None for the identity."""
    if base == "identity":
        return None
    margins = soft_margins(counts) if base == "soft" else sharp_margins(counts)
    low, high = logarithms(counts.prediction, margins)
    logit, one = low + high, np.ones_like(low)
    if base == "shift":
        return Scale(margins, 1.0, 1.0, _shift(counts, logit))
    # Another scale's numbers would be a bad start: what is moderate on one saturates the other.
    alike = [fit.scale for fit in known if fit.scale is not None and fit.scale.margins == margins]
    start = (alike[-1].low, alike[-1].offset) if alike else (0.0, 0.0)
    if base == "temperature":
        (a,) = _newton([logit], counts, [0.0], precision)
        return Scale(margins, max(a, 0.0), max(a, 0.0), 0.0)
    if base in {"sigmoid", "soft"}:
        a, c = _newton([logit, one], counts, start, precision)
        return Scale(margins, a, a, c) if a > 0 and counts.has_both else _constant(margins, counts)
    a, b, c = _newton([low, high, one], counts, (start[0], *start), precision)
    if a > 0 and b > 0 and counts.has_both:
        return Scale(margins, a, b, c)
    a, c0 = _newton([low, one], counts, (0.0, 0.0), precision)
    b, c1 = _newton([high, one], counts, (0.0, 0.0), precision)
    edges = [
        Scale(margins, slopes[0], slopes[1], c)
        for slopes, c in (((a, 0.0), c0), ((0.0, b), c1))
        if min(slopes) >= 0 and max(slopes) > 0 and counts.has_both
    ]
    edges.append(_constant(margins, counts))
    return max(edges, key=lambda scale: likelihood(scale(counts.prediction), counts))


def _constant(margins: tuple[float, float], counts: Counts) -> Scale:
    ones = counts.softened.sum()
    return Scale(margins, 0.0, 0.0, float(np.log(ones / (counts.rows.sum() - ones))))


def likelihood(g: Vector, counts: Counts) -> float:
    """Return the logarithm of the likelihood of the targets."""
    return float(counts.softened @ g - counts.rows @ np.logaddexp(0.0, g))


def _shift(counts: Counts, logit: Vector) -> float:
    """Return where the mean of σ(logit + c) is that of the targets: by halving and Newton."""
    rows, wanted = counts.rows, float(counts.softened.sum())
    low, high, at = -2_000.0, 2_000.0, 0.0
    for _ in range(_STEPS):
        p = expit(logit + at)
        excess = wanted - float(rows @ p)
        low, high = (at, high) if excess > 0 else (low, at)
        slope = float(rows @ (p * (1 - p)))
        step = at + excess / slope if slope > 0 else math.inf
        new = step if low < step < high else (low + high) / 2
        if abs(new - at) <= 1e-14 * (1 + abs(at)):
            break
        at = new
    return at


def _newton(
    columns: Sequence[Vector], counts: Counts, start: Sequence[float], precision: float
) -> list[float]:
    """Maximise the likelihood of a sum of columns, each with a factor."""
    size = np.array([max(float(np.abs(column).max()), _LEAST) for column in columns])
    x = np.stack(columns, axis=1) / size
    rows, wanted = counts.rows, counts.softened
    factor = np.array(start) * size
    value = x @ factor
    best = likelihood(value, counts)
    for _ in range(_STEPS):
        p = expit(value)
        gradient = (wanted - rows * p) @ x
        hessian = (x * (rows * p * (1 - p))[:, None]).T @ x
        hessian += 1e-12 * float(np.trace(hessian)) * np.eye(size.size)
        step = np.linalg.lstsq(hessian, gradient, rcond=None)[0]
        if gradient @ step <= precision * rows.sum():
            factor = factor + step  # a last one doubles the digits
            break
        length, change = 1.0, x @ step
        while (found := likelihood(value + length * change, counts)) < best and length > 1e-9:
            length /= 2
        factor = factor + length * step
        value, best = value + length * change, found
    return [float(f) for f in factor / size]


# -- windows -------------------------------------------------------------------------------------


def fit_window(
    counts: Counts, node: Vector, slack: float, start: Vector, precision: float
) -> Vector:
    """Maximise the likelihood with slopes between 1/slack and slack of those of the nodes.

    Newton's method, whose every step is a least squares problem on a chain, solved exactly. The
    start must lie within the window.
    """
    rows, wanted = counts.rows, counts.softened
    step = np.diff(node)
    low, high = step / slack, step * slack
    floor = _CURVATURE * rows.sum() / rows.size
    value, best = start, likelihood(start, counts)
    for _ in range(_STEPS):
        p = expit(value)
        curvature = np.maximum(rows * p * (1 - p), floor)
        gradient = wanted - rows * p
        fitted = np.empty_like(value)
        chain.fit(curvature, value + gradient / curvature, low, high, fitted)
        change = fitted - value
        gain = float(gradient @ change)
        if gain <= precision * rows.sum():
            return fitted  # a last step doubles the digits
        length = 1.0
        while length > 1e-9:
            found = likelihood(value + length * change, counts)
            if found >= best + 1e-4 * length * gain:
                break
            length /= 2
        else:
            break
        value, best = value + length * change, found
    return value


def _isotonic(candidate: Candidate, scale: Scale, counts: Counts) -> Fit:
    """Fit without bounds on slopes, which needs no iterations."""
    rows = counts.rows
    fitted = np.empty_like(rows)
    steps: NDArray[np.float64] = np.zeros(rows.size - 1)
    chain.fit(rows, counts.softened / rows, steps, np.full(rows.size - 1, math.inf), fitted)
    if scale.is_flat:  # it says only how values between predictions are filled in
        scale = Scale(scale.margins, 1.0, 1.0, 0.0)
    node = scale(counts.prediction)
    value = np.log(fitted) - np.log1p(-fitted)
    return Fit(candidate, scale, counts.prediction, node, np.maximum.accumulate(value))
