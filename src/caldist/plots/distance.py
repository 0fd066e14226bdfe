"""The certified bracket of the distance to calibration, one line for each model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from caldist import _validate
from caldist._validate import Rng
from caldist.inference.bracket import distance_bracket
from caldist.plots import _data, _style
from caldist.plots._display import Columns, Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["DistanceDisplay", "DistanceInterval"]


@dataclass(frozen=True)
class DistanceInterval:
    """What is certain about one model's distance to calibration.

    Attributes
    ----------
    name
        The model's name.
    lower, upper
        Certain bounds for the rows that were given.
    population_lower, population_upper
        Bounds for the population they come from, at ``confidence_level``; None where not computed.
    confidence_level
        That of the population's bounds, or None.
    """

    name: str
    lower: float
    upper: float
    population_lower: float | None = None
    population_upper: float | None = None
    confidence_level: float | None = None


class DistanceDisplay(Display[DistanceInterval]):
    """The distance to calibration of one or many models: what is certain, on one line each.

    The bar is :func:`caldist.distance_bracket`: whatever the domain, the least mean change of the
    predictions that makes them calibrated on the rows that were given lies in it. With a
    ``confidence_level`` the thin line below it does the same for the population that the rows come
    from, at that confidence.

    **Cost.** That of :func:`caldist.distance_bracket`: about a second for a million rows, and for
    the population a pass over the rows for each of 999 replicates.

    Parameters
    ----------
    models : list of DistanceInterval

    Examples
    --------
    >>> from caldist.plots import DistanceDisplay
    >>> display = DistanceDisplay.from_predictions([0, 1, 0, 1], [0.25, 0.5, 0.5, 0.75])
    >>> display.models[0].upper
    0.125
    >>> import matplotlib.pyplot as plt; plt.close(display.figure_)
    """

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_prob: ArrayLike | Mapping[str, ArrayLike],
        *,
        sample_weight: ArrayLike | None = None,
        name: str | None = None,
        confidence_level: float | None = None,
        groups: ArrayLike | None = None,
        rng: Rng = 0,
        ax: Axes | None = None,
    ) -> Self:
        """Compute the bracket of one or several models, and draw it.

        Parameters
        ----------
        y_true : array-like of 0 and 1
        y_prob : array-like in [0, 1], or dict from names to such
            The predicted probability of label 1.
        sample_weight : array-like, optional
        name : str, optional
            The model's name in the figure.
        confidence_level : float, optional
            Of the bounds for the population; without it they are left out.
        groups : array-like, optional
            The cluster of each row, for the bounds for the population.
        rng : int, Generator or None
            For the bounds for the population. The default gives the same figure each time.
        ax : matplotlib axes, optional
        """
        if confidence_level is not None:
            confidence_level = _validate.check_fraction("confidence_level", confidence_level)
        generator = _validate.generator(rng)
        models = []
        for model in _data.named(y_true, y_prob, sample_weight, name):
            sample = distance_bracket(y_true, model.score, sample_weight=sample_weight)
            ends: tuple[float | None, float | None] = (None, None)
            if confidence_level is not None:
                population = distance_bracket(
                    y_true, model.score, sample_weight=sample_weight, groups=groups,
                    confidence_level=confidence_level, rng=generator,
                )  # fmt: skip
                ends = (population.lower, population.upper)
            models.append(
                DistanceInterval(model.name, sample.lower, sample.upper, *ends, confidence_level)
            )
        return cls(models).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> Self:
        """Draw the brackets, the first model on top; on axes that have some already, below them.

        Parameters
        ----------
        ax : matplotlib axes, optional
        """
        from matplotlib.ticker import MaxNLocator  # only drawing needs it

        inches = 0.9 + 0.4 * len(self.models)
        if any(model.population_lower is not None for model in self.models):
            inches += 0.35 + 0.12 * len(self.models)
        ax = _style.axes_or_new(ax, 5.6, inches)
        before = len(_style.drawn(ax))
        self.ax_, self.figure_, self.lines_ = ax, ax.figure, []  # type: ignore[assignment]
        others: dict[str, Any] = {}
        for row, model in enumerate(self.models, start=before):
            others |= self._draw(ax, row, model)
        if before == 0:
            _style.plain_axes(ax)
            ax.spines["left"].set_visible(False)
            ax.tick_params(axis="y", length=0, labelsize="medium")
            ax.set_xlabel("distance to calibration")
            ax.xaxis.set_major_locator(MaxNLocator(5))
            ax.xaxis.set_major_formatter("{x:g}")
            ax.grid(axis="x", color="0.88", linewidth=0.6)
            ax.set_axisbelow(True)
        rows = _style.drawn(ax)
        ends = [float(np.max(line.get_xdata())) for line in ax.lines]
        ax.set_yticks(range(len(rows)), [_style.unmark(line) for line in rows])
        ax.set_ylim(len(rows) - 0.45, -0.6)
        ax.set_xlim(0, max(1.02 * max(ends), 1e-6))
        if others:
            _style.legend(ax, others.values(), models=False)
        return self

    def _draw(self, ax: Axes, row: int, model: DistanceInterval) -> dict[str, Any]:
        """Draw one model; return what the legend explains."""
        both = model.population_lower is not None and model.population_upper is not None
        height = row - 0.14 if both else row
        (bar,) = ax.plot(
            [model.lower, model.upper], [height, height], color=_style.DARK, linewidth=7,
            marker="|", markersize=7, markeredgewidth=1.2, solid_capstyle="butt", clip_on=False,
            label=_style.mark(model.name),
        )  # fmt: skip
        self.lines_.append(bar)
        _write(ax, model.lower, model.upper, height, "black")
        if model.population_lower is not None and model.population_upper is not None:
            (line,) = ax.plot(
                [model.population_lower, model.population_upper], [row + 0.24, row + 0.24],
                color=_style.RUST, linewidth=1.1, marker="|", markersize=5, clip_on=False,
                label=f"the population, {100 * (model.confidence_level or 0):.4g}% confidence",
            )  # fmt: skip
            _write(ax, model.population_lower, model.population_upper, row + 0.24, _style.RUST)
            return {"rows": _style.sample_of(bar, "these rows, certain", _style.DARK), "all": line}
        return {}

    def _columns(self, model: DistanceInterval) -> Columns:
        values = {key: value for key, value in asdict(model).items() if key != "name"}
        return {key: np.nan if value is None else value for key, value in values.items()}


def _write(ax: Axes, lower: float, upper: float, row: float, colour: str) -> None:
    """Write the two numbers behind a line."""
    ax.annotate(
        f"{lower:.3f} to {upper:.3f}", (upper, row), xytext=(7, 0), textcoords="offset points",
        va="center", fontsize="small", color=colour, annotation_clip=False,
    )  # fmt: skip
