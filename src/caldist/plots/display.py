"""What all displays have."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caldist._util.brief import listed, shown_value
from caldist._util.frames import frame
from caldist._util.results import plain
from caldist.data.joint import Joint
from caldist.data.rows import Rows, models_of
from caldist.errors import InvalidInput, InvalidType
from caldist.plots import _style, inputs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

# What displays are made from: labels with predictions, or joints in their place.
Labels = ArrayLike | Joint | Mapping[str, Joint]
Scores = ArrayLike | Mapping[str, ArrayLike] | None
Columns = dict[str, "NDArray[Any] | float"]


class Named(Protocol):
    """What one display holds of one model."""

    @property
    def name(self) -> str:
        """The model's name."""
        ...


Model = TypeVar("Model", bound=Named)


class Display(ABC, Generic[Model]):
    """A figure that keeps the numbers it shows.

    Attributes
    ----------
    models
        What is shown of each model.
    ax_, figure_, lines_
        Once it is drawn: the axes, their figure, and one line for each model.
    """

    models: tuple[Model, ...]
    ax_: Axes
    figure_: Figure
    lines_: list[Line2D]

    def __init__(self, models: Sequence[Model]) -> None:
        self.models = tuple(models)
        if not self.models:
            raise InvalidInput(argument="models", reason="is empty", remedy="Pass at least one.")

    def __repr__(self) -> str:
        return listed(type(self).__name__, (shown_value(model.name) for model in self.models))

    @abstractmethod
    def plot(self, *, ax: Axes | None = None) -> Self:
        """Draw the display on the axes, or on new ones."""

    def _begin(self, ax: Axes | None, width: float, height: float) -> tuple[Axes, int, bool]:
        """Return axes, how many models are on them already, and whether one alone will be."""
        ax = _style.axes_or_new(ax, width, height)
        self.ax_, self.figure_, self.lines_ = ax, ax.figure, []  # type: ignore[assignment]
        before = len(_style.drawn(ax))
        return ax, before, before + len(self.models) == 1

    @abstractmethod
    def _columns(self, model: Model) -> Columns:
        """Return what is shown of one model, as columns."""

    def to_dict(self) -> dict[str, Any]:
        """Return what is shown of each model as plain Python values, ready for JSON.

        Curves that are thinned for drawing have all their points; a gap in one is None.
        """
        return {
            "models": [
                {
                    key: [None if item != item else item for item in value]  # noqa: PLR0124 -- NaN
                    if isinstance(value, list)
                    else value
                    for key, value in plain(model).items()
                }
                for model in self.models
            ]
        }

    def to_frame(self, library: str = "pandas") -> Any:
        """Return the numbers that are shown, in long form, with a column ``model``.

        Curves that are thinned for drawing are in it with all their points.

        Parameters
        ----------
        library : "pandas" or "polars"
            What the data frame is made by.
        """
        names: list[str] = []
        pieces: dict[str, list[Any]] = {}
        for model in self.models:
            part = self._columns(model)
            size = max(np.size(column) for column in part.values())
            names += [model.name] * size
            for key, column in part.items():
                pieces.setdefault(key, []).append(np.broadcast_to(column, size))
        columns = {key: np.concatenate(parts) for key, parts in pieces.items()}
        texts = {key: part.tolist() for key, part in columns.items() if part.dtype.kind == "U"}
        return frame({"model": names, **columns, **texts}, library)


class PredictionDisplay(Display[Model]):
    """A display that is made from labels and predictions."""

    @classmethod
    def _of(
        cls,
        shown: Callable[[str, Rows], Model],
        y_true: Labels,
        y_prob: Scores,
        name: str | None,
        **options: Any,
    ) -> Self:
        """Check and sort the rows of each model once, and compute what is shown of it."""
        models = models_of(y_true, y_prob, name=name, default="predictions", **options)
        return cls(list(map(shown, models, models.values())))

    @classmethod
    @abstractmethod
    def from_predictions(cls, *args: Any, **kwargs: Any) -> Self:
        """Compute the display from labels and predictions, and draw it."""

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,  # noqa: N803 -- the name scikit-learn uses
        y: ArrayLike,
        *,
        name: str | None = None,
        **options: Any,
    ) -> Self:
        """Compute the display from a fitted classifier of two classes, and draw it.

        The second of its ``classes_`` is label 1.

        Parameters
        ----------
        estimator : classifier, or dict from names to classifiers
            With ``predict_proba`` and ``classes_``, as scikit-learn's have once they are fitted.
        X : the features of the rows
        y : array-like
            The class of each row.
        name : str, optional
            The name in the figure; that of the classifier's type by default.
        **options
            As for :meth:`from_predictions`.
        """
        if isinstance(estimator, Mapping):
            found = {key: inputs.estimator_predictions(one, X, y) for key, one in estimator.items()}
            label = [first for first, _ in found.values()]
            if any(not np.array_equal(label[0], other) for other in label[1:]):
                reason = "holds classifiers that do not have the same classes"
                raise InvalidInput(argument="estimator", reason=reason)
            scores = {key: score for key, (_, score) in found.items()}
            return cls.from_predictions(label[0] if label else y, scores, name=name, **options)
        label0, score = inputs.estimator_predictions(estimator, X, y)
        name = type(estimator).__name__ if name is None else name
        return cls.from_predictions(label0, score, name=name, **options)


class MatrixDisplay(Display[Model]):
    """A display that is made from classes and a matrix of probabilities."""

    @classmethod
    @abstractmethod
    def from_predictions(cls, *args: Any, **kwargs: Any) -> Self:
        """Compute the display from classes and a matrix, and draw it."""

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,  # noqa: N803 -- the name scikit-learn uses
        y: ArrayLike,
        *,
        name: str | None = None,
        **options: Any,
    ) -> Self:
        """Compute the display from a fitted classifier, and draw it.

        Parameters
        ----------
        estimator : classifier
            With ``predict_proba`` and ``classes_``, as scikit-learn's have once they are fitted.
        X : the features of the rows
        y : array-like
            The class of each row.
        name : str, optional
            The name in the figure; that of the classifier's type by default.
        **options
            As for :meth:`from_predictions`.
        """
        classes = inputs.estimator_classes(estimator)
        name = type(estimator).__name__ if name is None else name
        matrix = np.asarray(estimator.predict_proba(X))
        return cls.from_predictions(y, matrix, classes=classes.tolist(), name=name, **options)


def one_name(name: str | None) -> str:
    """Return the name of a single model."""
    if name is not None and not isinstance(name, str):
        raise InvalidType(argument="name", value=name, reason="it must be a string")
    return "predictions" if name is None else name
