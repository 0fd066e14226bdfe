"""Reliability diagrams of several classes: of the most probable one, and of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from caldist.data import validate
from caldist.data.class_rows import Classes, ClassRows
from caldist.data.rows import Rows
from caldist.data.validate import Rng
from caldist.errors import answering
from caldist.multiclass.classwise import classwise_table
from caldist.plots.classwise import class_shares
from caldist.plots.display import MatrixDisplay, one_name
from caldist.plots.reliability import ReliabilityCurve, ReliabilityDrawing, reliability_curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST = 4  # curves that one pair of axes can show without confusion


class TopLabelDisplay(ReliabilityDrawing, MatrixDisplay[ReliabilityCurve]):
    """How often the most probable class is true, over its probability.

    It is a :class:`ReliabilityDisplay` of :func:`caldist.multiclass.top_label`. A curve on the
    diagonal says that confidences can be taken as they are. It bounds nothing about the whole row
    of probabilities, and a curve off the diagonal is no bound either: see
    :func:`caldist.multiclass.top_label`.

    **Cost.** As of a :class:`ReliabilityDisplay`.

    Parameters
    ----------
    models : list of ReliabilityCurve

    Examples
    --------
    >>> from caldist.plots import TopLabelDisplay
    >>> y_prob = [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5], [0.5, 0.25, 0.25]]
    >>> display = TopLabelDisplay.from_predictions([0, 2, 2, 1], y_prob)
    >>> display.ax_.get_xlabel()
    'probability of the most probable class'
    >>> import matplotlib.pyplot as plt; plt.close(display.figure_)
    """

    _axes: ClassVar[tuple[str, str]] = (
        "probability of the most probable class",
        "how often it is true",
    )
    _sides: ClassVar[tuple[str, str]] = ("right", "wrong")

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
        """Compute the curve of a model, and draw it.

        Parameters
        ----------
        y_true : array-like of classes
            Numbers 0, 1, …, or names listed in ``classes``.
        y_prob : matrix
            A row per example and a column per class, rows summing to 1.
        classes : sequence, optional
            The labels in the order of the columns, where they are not 0, 1, … or the names of a
            frame's columns.
        normalize : bool
            Divide each row by its sum, where rounding keeps rows from summing to 1.
        sample_weight : array-like, optional
        name : str, optional
            The model's name in the figure.
        confidence_level : float or None
            That of the band; None for no band.
        rng : int, Generator or None
            For the band. The same rows give the same answer; None draws a fresh seed.
        ax : matplotlib axes, optional
            Where another model is drawn already, beside it.
        """
        if confidence_level is not None:
            confidence_level = validate.check_fraction("confidence_level", confidence_level)
        generator, name = validate.generator(rng), one_name(name)
        rows = ClassRows.of(
            y_true, y_prob, classes=classes, normalize=normalize, sample_weight=sample_weight
        )
        curve = reliability_curve(name, top_label_rows(rows), confidence_level, generator)
        return cls([curve]).plot(ax=ax)


class ClassReliabilityDisplay(ReliabilityDrawing, MatrixDisplay[ReliabilityCurve]):
    """How often a class is true, over its probability: a curve for each of the worst classes.

    Each curve is that of a :class:`ReliabilityDisplay` of one class against the rest, as
    :func:`caldist.multiclass.one_vs_rest` makes it, with a band of its own. Of many classes the
    worst are shown, in the order of a :class:`ClasswiseDisplay`.

    **Cost.** That of :func:`caldist.multiclass.classwise_table`, which finds the worst, and of a
    :class:`ReliabilityDisplay` for each curve.

    Parameters
    ----------
    models : list of ReliabilityCurve
        A curve for each class.

    Examples
    --------
    >>> from caldist.plots import ClassReliabilityDisplay
    >>> y_prob = [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5], [0.5, 0.25, 0.25]]
    >>> display = ClassReliabilityDisplay.from_predictions([0, 2, 2, 1], y_prob, most=2)
    >>> [curve.name for curve in display.models]
    ['2', '0']
    >>> import matplotlib.pyplot as plt; plt.close(display.figure_)
    """

    _axes: ClassVar[tuple[str, str]] = ("probability of the class", "how often it is true")
    _sides: ClassVar[tuple[str, str]] = ("true", "other")

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
        most: int = MOST,
    ) -> Self:
        """Compute the curves of the worst classes, and draw them.

        Parameters
        ----------
        y_true : array-like of classes
            Numbers 0, 1, …, or names listed in ``classes``.
        y_prob : matrix
            A row per example and a column per class, rows summing to 1.
        classes : sequence, optional
            The labels in the order of the columns, where they are not 0, 1, … or the names of a
            frame's columns.
        normalize : bool
            Divide each row by its sum, where rounding keeps rows from summing to 1.
        sample_weight : array-like, optional
        name : str, optional
            The model's name, put before those of the classes.
        confidence_level : float or None
            That of each band, and of the lower limits that order the classes; None for no band.
        rng : int, Generator or None
            For bands and limits. The same rows give the same answer; None draws a fresh seed.
        ax : matplotlib axes, optional
        most : int
            How many classes are shown.
        """
        if confidence_level is not None:
            confidence_level = validate.check_fraction("confidence_level", confidence_level)
        most = validate.check_count("most", most)
        prefix = "" if name is None else f"{one_name(name)}, "
        seed = int(validate.generator(rng).integers(2**63))
        rows = ClassRows.of(
            y_true, y_prob, classes=classes, normalize=normalize, sample_weight=sample_weight
        )
        table = classwise_table(rows, confidence_level=confidence_level, rng=seed)  # type: ignore[arg-type]  # checked
        worst = class_shares("", table).worst_first()[:most].tolist()
        curves = class_curves(rows, worst, prefix, confidence_level, seed)
        return cls(curves).plot(ax=ax)


def top_label_rows(rows: ClassRows) -> Rows:
    """Return the binary problem of the most probable class, the first of equal ones."""
    best = rows.dense.argmax(axis=1)
    confidence = rows.dense[np.arange(best.size), best]
    right = (best == rows.label).view(np.uint8)
    return Rows(right, confidence, rows.weight)


def class_curves(
    rows: ClassRows, numbers: list[int], prefix: str, confidence_level: float | None, seed: int
) -> list[ReliabilityCurve]:
    """Return the curves of some classes, each with draws of its own."""
    found: dict[int, ReliabilityCurve] = {}
    for number, column in enumerate(rows.columns()):
        if number in numbers:
            rng = np.random.default_rng((seed, number))
            problem = rows.problem(column, number)
            name = f"{prefix}{rows.names[number]}"
            found[number] = reliability_curve(name, problem, confidence_level, rng)
    return [found[number] for number in numbers]
