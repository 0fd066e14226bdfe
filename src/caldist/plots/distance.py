"""The certified bracket of the distance to calibration, one line for each model."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from caldist._util.brief import Brief
from caldist._util.numbers import down, up
from caldist.data import validate
from caldist.data.rows import Rows
from caldist.data.validate import Rng
from caldist.errors import InvalidInput, answering
from caldist.inference.intervals import interval_of_distance
from caldist.inference.limits import warn_if_few
from caldist.inference.resampling import Resampler
from caldist.inference.sample import units_of
from caldist.measures.certification import sample_bracket
from caldist.measures.lower_distance import TOLERANCE
from caldist.plots import _style
from caldist.plots.display import Columns, Labels, PredictionDisplay, Scores

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class DistanceInterval(Brief):
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


class DistanceDisplay(PredictionDisplay[DistanceInterval]):
    """The distance to calibration of one or many models: what is certain, on one line each.

    The bar is :func:`caldist.distance_bracket`: whatever the domain, the least mean change of the
    predictions that makes them calibrated on the rows that were given lies in it. With a
    ``confidence_level`` the thin line below it does the same for the population that the rows come
    from, at that confidence. Of a joint with rounded predictions both speak of the rows before they
    were rounded.

    **Cost.** That of :func:`caldist.distance_bracket`: about a second for a million rows, and for
    the population a pass over the rows for each replicate.

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
    @answering
    def from_predictions(
        cls,
        y_true: Labels,
        y_prob: Scores = None,
        *,
        sample_weight: ArrayLike | None = None,
        pos_label: object = None,
        clusters: ArrayLike | None = None,
        name: str | None = None,
        confidence_level: float | None = None,
        n_resamples: int = 999,
        rng: Rng = 0,
        ax: Axes | None = None,
    ) -> Self:
        """Compute the bracket of one or several models, and draw it.

        Parameters
        ----------
        y_true : array-like of 0 and 1, Joint, or dict from names to joints
            A joint stands for labels, predictions and weights at once.
        y_prob : array-like in [0, 1], or dict from names to such
            The predicted probability of label 1.
        sample_weight : array-like, optional
        pos_label : optional
            The value of ``y_true`` that counts as label 1, where labels are not 0 and 1.
        clusters : array-like, optional
            Only with a confidence level: the cluster of each row.
        name : str, optional
            The model's name in the figure.
        confidence_level : float, optional
            Of the bounds for the population; without it they are left out.
        n_resamples : int
            The replicates behind the bounds for the population.
        rng : int, Generator or None
            For the bounds for the population. The same rows give the same answer; None draws a
            fresh seed.
        ax : matplotlib axes, optional
        """
        level = confidence_level
        if level is not None:
            level = validate.check_fraction("confidence_level", level)
        elif clusters is not None:
            raise InvalidInput(
                argument="clusters",
                reason="matters for statements about the population only",
                remedy="Pass confidence_level too.",
            )
        resampler = Resampler.of(rng, n_resamples=n_resamples)
        found = cls._of(
            lambda key, rows: _interval(key, rows, level, resampler),
            y_true, y_prob, name,
            sample_weight=sample_weight, clusters=clusters, pos_label=pos_label,
        )  # fmt: skip
        return found.plot(ax=ax)

    @answering
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
        ax, before, _ = self._begin(ax, 5.6, inches)
        others: dict[str, Any] = {}
        for row, model in enumerate(self.models, start=before):
            others |= self._draw(ax, row, model)
        if before == 0:
            _style.plain_axes(ax)
            ax.spines["left"].set_visible(False)
            ax.tick_params(axis="y", length=0, labelsize="medium")
            ax.set_xlabel("distance to calibration")
            ax.xaxis.set_major_locator(MaxNLocator(2 if _style.is_narrow(ax) else 5))
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
        _style.lighten(ax)
        _style.fit(ax, [*ax.texts, *ax.get_yticklabels()])
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


def _interval(name: str, rows: Rows, level: float | None, resampler: Resampler) -> DistanceInterval:
    sample = sample_bracket(rows.joint, tol=TOLERANCE)
    if level is None:
        return DistanceInterval(name, sample.lower, sample.upper)
    warn_if_few(units_of(rows))
    population = interval_of_distance(rows, level, resampler)
    ends = (population.lower, population.upper)
    return DistanceInterval(name, sample.lower, sample.upper, *ends, level)


def _write(ax: Axes, lower: float, upper: float, row: float, colour: str) -> None:
    """Write the two numbers behind a line."""
    ax.annotate(
        f"{down(lower)} to {up(upper)}", (upper, row), xytext=(7, 0), textcoords="offset points",
        va="center", fontsize="small", color=colour, annotation_clip=False,
    )  # fmt: skip
