"""Three classes as a triangle: where the predictions are, and where they should be."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caldist import _validate
from caldist._near_misses import answering
from caldist._util.brief import Brief
from caldist._util.types import Vector
from caldist._validate import Rng
from caldist.data.class_rows import Classes, ClassRows, sums_by
from caldist.multiclass._cells import leaves
from caldist.plots import _style
from caldist.plots._display import Columns, MatrixDisplay, one_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_GROUPS = 32  # at most as many arrows, which can still be told apart
_LEAST = 12  # rows of a group
_POINTS = 500  # predictions that are shown as dots
_DRAWS = 5000
_CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, math.sqrt(3) / 2]])
_ROUNDING = 1e-12
_SHORT = 0.012  # an arrow of less is a dot


@dataclass(frozen=True, eq=False)
class SimplexGroups(Brief):
    """The predictions of one model with three classes, in groups.

    Attributes
    ----------
    name
        The model's name.
    classes
        The three classes as text: below left, below right, above.
    prediction, frequency
        The mean prediction and the frequencies of the classes of each group, a row for each.
    mass
        The share of the rows in each group.
    beyond
        Whether the two are farther apart than chance explains, all groups together.
    point
        Some of the predictions.
    confidence_level
        That of ``beyond``, or None.
    """

    name: str
    classes: tuple[str, ...]
    prediction: Vector
    frequency: Vector
    mass: Vector
    beyond: NDArray[np.bool_]
    point: Vector
    confidence_level: float | None = None


class SimplexDisplay(MatrixDisplay[SimplexGroups]):
    r"""Predictions of three classes in a triangle, with arrows to what came true.

    Each corner is a class, and a prediction is nearer to a corner the more probable it says the
    class is; dots are predictions, at most 500 of them. Rows are put into groups of similar
    predictions, by cutting the widest class in two until they are small; the labels have no part
    in it. An arrow leads from the mean prediction of a group to the frequencies of its classes. It
    is as long as the group is wrong: predictions that are calibrated have short arrows in all
    directions. Errors that cancel in every class, which no bar per class can show, are seen here
    as arrows that go round.

    **Arrows beyond chance** are bold. Labels are drawn 5,000 times from the mean predictions of the
    groups; if predictions are calibrated no arrow is bold with probability ``confidence_level``,
    all groups together.

    **Cost.** O(n log n), and the draws in at most 32 groups.

    Parameters
    ----------
    models : list of SimplexGroups
        One model.

    Examples
    --------
    >>> from caldist.plots import SimplexDisplay
    >>> y_prob = [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5], [0.5, 0.25, 0.25]]
    >>> display = SimplexDisplay.from_predictions([0, 2, 2, 1] * 9, y_prob * 9)
    >>> display.models[0].classes, round(float(display.models[0].mass.sum()), 6)
    (('0', '1', '2'), 1.0)
    >>> import matplotlib.pyplot as plt; plt.close(display.figure_)
    """

    pointed: ClassVar[bool] = False

    @classmethod
    @answering
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_prob: ArrayLike,
        *,
        classes: Classes | None = None,
        normalize: bool = False,
        sample_weight: ArrayLike | None = None,
        name: str | None = None,
        confidence_level: float | None = 0.95,
        rng: Rng = 0,
        ax: Axes | None = None,
    ) -> Self:
        """Group the predictions, and draw them.

        Parameters
        ----------
        y_true : array-like of classes
            Numbers 0, 1, 2, or names listed in ``classes``.
        y_prob : matrix
            A row per example and three columns, rows summing to 1.
        classes : sequence, optional
            The labels in the order of the columns, where they are not 0, 1, 2.
        normalize : bool
            Divide each row by its sum, where rounding keeps rows from summing to 1.
        sample_weight : array-like, optional
        name : str, optional
            The model's name in the figure.
        confidence_level : float or None
            With which no arrow is bold if predictions are calibrated; None for no bold ones.
        rng : int, Generator or None
            For the draws. The default gives the same figure each time.
        ax : matplotlib axes, optional
        """
        if confidence_level is not None:
            confidence_level = _validate.check_fraction("confidence_level", confidence_level)
        generator, name = _validate.generator(rng), one_name(name)
        rows = ClassRows.of(
            y_true, y_prob, classes=classes, normalize=normalize, sample_weight=sample_weight
        )
        shown = simplex_groups(name, rows, confidence_level, generator)
        return cls([shown]).plot(ax=ax)

    @answering
    def plot(self, *, ax: Axes | None = None) -> Self:
        """Draw the triangle.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Without one already.
        """
        if len(self.models) > 1:
            message = (
                f"models has {len(self.models)} models; a triangle shows one: make a display for "
                "each."
            )
            raise ValueError(message)
        [model] = self.models
        ax, before, _ = self._begin(ax, 4.8, 4.9)
        if before:
            _style.refuse_second(ax)
        _triangle(ax, model.classes)
        x, y = (model.point @ _CORNERS).T
        self.lines_ += ax.plot(
            x, y, linestyle="none", marker="o", markersize=2.2, markeredgewidth=0,
            color=_style.tint(ax, "0.62", 0.6), zorder=2, label=_style.mark(model.name),
        )  # fmt: skip
        others: dict[str, Any] = {}
        for which, colour, width, words in (
            (~model.beyond, _style.DARK, 0.8, "from mean prediction to frequencies"),
            (model.beyond, _style.RUST, 2.0, _words(model)),
        ):
            for start, end in zip(
                model.prediction[which] @ _CORNERS, model.frequency[which] @ _CORNERS, strict=True
            ):
                _arrow(ax, start, end, colour, width)
            if which.any():
                others[words] = _sample(colour, width, words)
        _style.legend(ax, others.values())
        return self

    def _columns(self, model: SimplexGroups) -> Columns:
        numbers = range(3)
        return {
            **{f"prediction_{j}": model.prediction[:, j] for j in numbers},
            **{f"frequency_{j}": model.frequency[:, j] for j in numbers},
            "mass": model.mass,
            "beyond": model.beyond,
        }


def _words(model: SimplexGroups) -> str:
    return f"beyond chance ({100 * (model.confidence_level or 0):.4g}%, all groups)"


def _triangle(ax: Axes, classes: tuple[str, ...]) -> None:
    ax.set_axis_off()
    ax.set_aspect("equal")
    for part in (0.25, 0.5, 0.75):
        for j in range(3):
            a, b, c = _CORNERS[j], _CORNERS[(j + 1) % 3], _CORNERS[(j + 2) % 3]
            ends = np.array([part * a + (1 - part) * b, part * a + (1 - part) * c])
            ax.plot(*ends.T, color="0.88", linewidth=0.6, zorder=0)
    ax.plot(*np.vstack((_CORNERS, _CORNERS[:1])).T, color="0.4", linewidth=0.8, zorder=1)
    places = (
        (0, -0.03, "left", "top"),
        (1, -0.03, "right", "top"),
        (0.5, 0.885, "center", "bottom"),
    )
    for name, (x, y, across, up) in zip(classes, places, strict=True):
        ax.text(x, y, _style.shown(name), ha=across, va=up, fontsize="medium")
    ax.set(xlim=(-0.03, 1.03), ylim=(-0.1, 0.95))


def _arrow(ax: Axes, start: Vector, end: Vector, colour: str, width: float) -> None:
    if math.dist(start, end) < _SHORT:
        ax.plot(*start, marker="o", markersize=2 + width, color=colour, zorder=4)
        return
    ax.annotate(
        "", xy=(float(end[0]), float(end[1])), xytext=(float(start[0]), float(start[1])),
        zorder=4, annotation_clip=False,
        arrowprops={
            "arrowstyle": "-|>", "color": colour, "linewidth": width, "shrinkA": 0, "shrinkB": 0,
            "mutation_scale": 6 + 2.5 * width,
        },
    )  # fmt: skip


def _sample(colour: str, width: float, words: str) -> Any:
    from matplotlib.lines import Line2D  # only drawing needs it

    return Line2D(
        [], [], color=colour, linewidth=width, marker=">", markersize=3 + width, label=words,
        markevery=[1],
    )  # fmt: skip


def simplex_groups(
    name: str, rows: ClassRows, confidence_level: float | None, rng: np.random.Generator
) -> SimplexGroups:
    """Group the rows of one model."""
    if rows.n_classes != 3:
        message = (
            f"y_prob has {rows.n_classes} columns; a triangle shows three classes. For others use "
            "ClasswiseDisplay, or add up columns."
        )
        raise ValueError(message)
    cell = leaves(rows.dense, max(_LEAST, math.ceil(rows.n_rows / _GROUPS)))
    count = int(cell.max()) + 1
    mass = sums_by(cell, rows.share, count)
    square = sums_by(cell, rows.share**2, count)
    seen = np.bincount(3 * cell + rows.label, rows.share, 3 * count).reshape(count, 3)
    mean = np.array([np.bincount(cell, rows.share * v, count) for v in rows.columns()]).T
    kept = mass > 0
    mass, square, seen, mean = mass[kept], square[kept], seen[kept], mean[kept]
    prediction, frequency = mean / mass[:, None], seen / mass[:, None]
    prediction /= prediction.sum(axis=1, keepdims=True)
    beyond = np.zeros(mass.size, dtype=bool)
    if confidence_level is not None:
        size = np.maximum(1, np.rint(mass**2 / square)).astype(np.int64)
        beyond = _beyond(prediction, frequency, size, confidence_level, rng)
    shown = np.flatnonzero(rows.share)
    if shown.size > _POINTS:
        shown = rng.choice(rows.n_rows, _POINTS, replace=False, p=rows.share)
    names = tuple(map(str, rows.names))
    return SimplexGroups(
        name, names, prediction, frequency, mass, beyond, rows.dense[shown], confidence_level
    )


def _beyond(
    prediction: Vector, frequency: Vector, size: Any, level: float, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Mark groups that are farther off, among draws of their own, than any group is in most draws.

    Labels of one mean prediction vary at least as much as those of predictions about it.
    """
    drawn = rng.multinomial(size, prediction, size=(_DRAWS, size.size)) / size[:, None]
    off = 0.5 * np.abs(drawn - prediction).sum(axis=2)
    found = 0.5 * np.abs(frequency - prediction).sum(axis=1)
    ordered = np.sort(off - _ROUNDING, axis=0)
    # How many draws of a group are at least as far off, for each draw itself and for the data.
    above = np.empty(off.shape, dtype=np.int64)
    for at, column in enumerate(ordered.T):
        above[:, at] = _DRAWS - np.searchsorted(column, off[:, at])
    count = _DRAWS - np.array(
        [np.searchsorted(column, one) for column, one in zip(ordered.T, found, strict=True)]
    )
    least = np.sort(above.min(axis=1))
    rank = math.floor((1 - level) * (_DRAWS + 1))
    # A further draw has a group below the rank-th least with probability 1 - level at most.
    return np.asarray(count < least[rank - 1]) if rank else np.zeros(size.size, dtype=bool)
