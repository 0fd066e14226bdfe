"""What all displays have."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caldist._util.frames import frame
from caldist.plots import _data

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

__all__ = ["Columns", "Display"]

Columns = dict[str, "NDArray[Any] | list[str] | float"]


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
            message = "models is empty: at least one is needed."
            raise ValueError(message)

    def __repr__(self) -> str:
        names = ", ".join(repr(model.name) for model in self.models)
        return f"{type(self).__name__}({names})"

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
            found = {key: _data.estimator_predictions(one, X, y) for key, one in estimator.items()}
            label = [first for first, _ in found.values()]
            if any(not np.array_equal(label[0], other) for other in label[1:]):
                message = "the estimators do not have the same classes."
                raise ValueError(message)
            scores = {key: score for key, (_, score) in found.items()}
            return cls.from_predictions(label[0] if label else y, scores, name=name, **options)
        label0, score = _data.estimator_predictions(estimator, X, y)
        name = type(estimator).__name__ if name is None else name
        return cls.from_predictions(label0, score, name=name, **options)

    @abstractmethod
    def plot(self, *, ax: Axes | None = None) -> Self:
        """Draw the display on the axes, or on new ones."""

    @abstractmethod
    def _columns(self, model: Model) -> Columns:
        """Return what is shown of one model, as columns."""

    def frame(self) -> Any:
        """Return the numbers that are shown, in long form, with a column ``model``.

        A pandas or polars data frame or a pyarrow table, whichever is installed, in that order.
        Curves that are thinned for drawing are in it with all their points.
        """
        parts = [self._columns(model) for model in self.models]
        columns: dict[str, Any] = {"model": []}
        for model, part in zip(self.models, parts, strict=True):
            size = max(np.size(column) for column in part.values())
            columns["model"] += [model.name] * size
            for key, column in part.items():
                whole = column if isinstance(column, list) else np.broadcast_to(column, size)
                columns.setdefault(key, []).append(whole)
        for key, pieces in columns.items():
            if key != "model":
                columns[key] = (
                    [cell for piece in pieces for cell in piece]
                    if isinstance(pieces[0], list)
                    else np.concatenate(pieces)
                )
        return frame(columns)
