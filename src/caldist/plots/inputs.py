"""What the displays compute with: cells, calibrated resamples, thinned curves."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caldist._util.invalid import show
from caldist._util.types import Vector
from caldist.data import validate
from caldist.data.grid import MAX_BITS
from caldist.data.rows import Rows
from caldist.errors import InvalidInput, InvalidType
from caldist.inference.resampling import Resampler
from caldist.inference.sample import LABELS, Units, units_of, whole_rows
from caldist.measures.reflected_gaussian import Kernel
from caldist.plots.scale import Scale, ScaleName, scale_of

LEAST_WIDTH = (
    0.01  # of smoothing, in units of the axis: what is finer than a line is thick cannot be seen
)
GRID = np.linspace(
    0, 1, 201
)  # places on the axis where smooth curves are evaluated: two points per least width
NEGLIGIBLE = 1e-10  # density that rounding could have made
_MANY = 2**16  # rows from which a grid is cheaper
_AXIS_BITS = 15  # of a grid for drawing, on an axis of length 1
_CELLS = 1000  # of resampled predictions, ten per least width
_BINS = 250  # of a thinned curve, with at most four points each
_ROUNDS, _OFF = 6, 2e-4  # of leaving points out, and how far off the line they may be each time


def on_axis(rows: Rows, name: ScaleName) -> tuple[Rows, Scale]:
    """Return rows as they are drawn, and the axis that fits them.

    Many rows are put onto a grid, without a sort, whose cells are at most 2^-15 of the axis: a
    fiftieth of what can be seen.
    """
    if _may_be_rounded(rows, name):
        bits = _AXIS_BITS
        while True:
            joint = rows.round_to_grid(bits)
            axis = scale_of(name, joint.prediction, joint.mass0 + joint.mass1)
            needed = min(_AXIS_BITS - math.floor(math.log2(axis.upper - axis.lower)), MAX_BITS)
            if bits >= needed:
                return Rows.of(joint), axis
            bits = needed
    joint = rows.joint
    return rows, scale_of(name, joint.prediction, np.add(*joint.normalized()))


def _may_be_rounded(rows: Rows, name: ScaleName) -> bool:
    plain = not rows.is_summary and rows.weight is None and rows.cluster is None
    return plain and name == "linear" and rows.size >= _MANY


@dataclass(frozen=True, eq=False)
class Cells:
    """Predictions in cells of 1/1000 of the axis: mean, mass, and effective number of rows.

    The effective number is the number of rows of equal weight whose mean has the same variance:
    (Σw)²/Σw². ``start`` is the index of the first prediction of each cell in ``units``; ``place``
    its mean prediction, and ``at`` where that stands on the axis, ``scale``.
    """

    units: Units
    start: NDArray[np.intp]
    place: Vector
    mass: Vector
    rows: Vector
    at: Vector
    scale: Scale

    @classmethod
    def of(cls, rows: Rows, mapped: Vector | None = None, scale: Scale | None = None) -> Cells:
        """Put the predictions into cells; or what a monotone map made of them."""
        scale = Scale() if scale is None else scale
        mass, units = np.add(*rows.joint.normalized()), units_of(rows)
        v = rows.joint.prediction if mapped is None else mapped
        at = scale.place(v)
        cell = np.minimum((at * _CELLS).astype(np.intp), _CELLS - 1)
        start = np.flatnonzero(np.diff(cell, prepend=-1))
        weight = np.add.reduceat(mass, start)
        place = np.add.reduceat(mass * v, start) / weight
        square = np.add.reduceat(units.squares, start)
        count = np.ones_like(square)  # where the weight is too small for its square to be a number
        np.divide(weight**2, square, out=count, where=square > 0)
        place = np.clip(place, 0, 1)
        middle = place if scale.is_whole else np.add.reduceat(mass * at, start) / weight
        return cls(units, start, place, weight, np.maximum(count, 1), np.clip(middle, 0, 1), scale)

    def calibrated_residuals(self, count: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw the residual masses that calibrated predictions would show, a row per draw.

        The labels of a cell's rows are drawn as Bernoulli variables of its mean prediction. That is
        exact for distinct predictions in cells of their own; otherwise it moves predictions by less
        than 1/1000 of the axis. Each row's own label is drawn where rows have weights, and where
        they are in clusters, one random number then deciding a whole cluster. Of weights of which
        only sums are known there are no more rows than have the right variance.
        """
        alike = (self.units.share == self.units.share[0]).all()
        if self.units.cluster is not None or (self.units.heaviest is None and not alike):
            sizes = np.diff(self.start, append=self.units.prediction.size)
            draw = self.units.drawing_in(np.repeat(np.arange(sizes.size), sizes))
            resampler = Resampler.of(rng, n_resamples=count)
            return resampler.run(draw, family=LABELS, size=self.units.n_rows)
        size = whole_rows(self.rows)
        # Cell by cell, as the generator is quicker when it draws again with the same numbers.
        ones = rng.binomial(size[:, None], self.place[:, None], size=(size.size, count)).T
        return np.asarray((ones / size - self.place) * self.mass)

    def chance_width(self) -> float:
        r"""Return a width of smoothing, from the predictions alone.

        It is the σ that equals the standard deviation, by chance, of the smoothed frequency
        :math:`E[y K_\sigma(v, t)] / E[K_\sigma(v, t)]` of calibrated predictions, averaged over t
        between the least and the largest of them: the curve is smoothed across by as much as
        chance moves it up and down, as it is seen on the axis. It is in units of the axis, and at
        least 0.01. As the labels have no part in it, what is
        smoothed with it can be compared with what calibrated predictions would show.
        """
        variance = self.mass**2 / self.rows * self.place * (1 - self.place)
        first, last = np.searchsorted(GRID, (self.at[0], self.at[-1]))
        at = GRID[first : last + 1 : 2]
        steep = self.scale.slope(at)
        kernel = Kernel(self.at, at, LEAST_WIDTH)

        def is_narrow(width: float) -> bool:
            weight = kernel(width)
            known = self.mass @ weight > NEGLIGIBLE  # elsewhere chance has free play
            spread = np.full(at.size, 0.5)
            spread[known] = np.sqrt(variance @ weight[:, known] ** 2)
            spread[known] *= steep[known] / (self.mass @ weight[:, known])
            return bool(width < np.minimum(spread, 0.5).mean())

        if not is_narrow(LEAST_WIDTH):  # as a rule, where rows are many
            return LEAST_WIDTH
        low, high = math.log(LEAST_WIDTH), 0.0
        while high - low > 0.02:
            middle = (low + high) / 2
            low, high = (middle, high) if is_narrow(math.exp(middle)) else (low, middle)
        return math.exp(low)


def estimator_classes(estimator: Any) -> NDArray[Any]:
    """Return the classes of a fitted classifier."""
    if not hasattr(estimator, "predict_proba") or not hasattr(estimator, "classes_"):
        raise InvalidType(
            argument="estimator",
            reason=f"is of type {type(estimator).__name__}, but a fitted classifier with "
            "predict_proba and classes_ is needed",
            remedy="Otherwise pass probabilities to from_predictions.",
        )
    return np.asarray(estimator.classes_)


def estimator_predictions(
    estimator: Any,
    X: Any,  # noqa: N803 -- the name scikit-learn passes
    y: ArrayLike,
) -> tuple[NDArray[np.uint8], NDArray[Any]]:
    """Return labels 0 and 1 and the probabilities of the second class of a fitted classifier."""
    classes = estimator_classes(estimator)
    if classes.shape != (2,):
        raise InvalidInput(
            argument="estimator",
            reason=f"has the classes {show(classes.tolist())}, but only two are supported",
            remedy="Reduce explicitly with caldist.multiclass.top_label or "
            "caldist.multiclass.one_vs_rest, and pass the result to from_predictions.",
        )
    label = np.asarray(y)
    second = label == classes[1]
    unknown = ~(second | (label == classes[0]))
    if unknown.ndim != 1 or unknown.any():
        at = validate.first(np.atleast_1d(unknown).ravel())
        raise InvalidInput(
            argument="y",
            index=at,
            value=label.ravel()[at],
            reason="y has one of the estimator's classes for each row, "
            f"{' or '.join(map(repr, classes.tolist()))}",
        )
    return second.astype(np.uint8), np.asarray(estimator.predict_proba(X))[:, 1]


def quantile_places(mass: Vector, count: int = 10) -> NDArray[np.intp]:
    """Return where the quantiles 1/(2 count), 3/(2 count), … of point masses are, each once."""
    share = np.cumsum(mass)
    level = (np.arange(count) + 0.5) / count * share[-1]
    return np.unique(np.searchsorted(share, level).clip(max=mass.size - 1))


def thin(x: Vector, y: Vector) -> NDArray[np.intp]:
    """Return which points of a long curve to draw: at most 1,000, and the picture stays the same.

    The first, last, lowest and highest point in each of 250 bins of x stay, which are what can
    be seen as long as a bin is not wider than the line: up to five inches of width. Of these,
    points that are on the line between their neighbours are left out.
    """
    mask = np.ones(x.size, dtype=bool)
    if x.size > 4 * _BINS:
        inside = ((x - x[0]) * (_BINS / (x[-1] - x[0]))).astype(np.intp).clip(max=_BINS - 1)
        start = np.flatnonzero(np.diff(inside, prepend=-1))
        size = np.diff(start, append=x.size)
        mask[:] = False
        mask[start] = mask[start + size - 1] = True
        for extreme in (np.minimum, np.maximum):
            found = np.flatnonzero(y == np.repeat(extreme.reduceat(y, start), size))
            once = np.unique(inside[found], return_index=True)[1]
            mask[found[once]] = True
    index = np.flatnonzero(mask)
    for _ in range(_ROUNDS):
        index = index[_bent(x[index], y[index])]
    return index


def _bent(x: Vector, y: Vector) -> NDArray[np.bool_]:
    """Mark all points but every other one, and of those the ones off their neighbours' line."""
    bent = np.ones(x.size, dtype=bool)
    if x.size < 3:
        return bent
    x, y = x / max(np.ptp(x), 1e-300), y / max(np.ptp(y), 1e-300)
    left, at, right = slice(0, -2, 2), slice(1, -1, 2), slice(2, None, 2)
    dx, dy = x[right] - x[left], y[right] - y[left]
    area = np.abs(dx * (y[at] - y[left]) - dy * (x[at] - x[left]))
    bent[at] = area > _OFF * np.hypot(dx, dy)
    return bent
