"""The classic reliability diagram: bins, gaps and counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from caldist._util.brief import Brief
from caldist._util.types import Integers, Vector
from caldist.clinical.calibration_curve import curve_of
from caldist.data import validate
from caldist.data.rows import Rows
from caldist.errors import answering
from caldist.measures.bins import Strategy
from caldist.plots import _style
from caldist.plots.display import Columns, Labels, PredictionDisplay, Scores
from caldist.plots.scale import SCALES, Scale, ScaleName, scale_of, scale_on, together

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LETTER = 0.03  # of the axis: what a number on its side needs
_MOST = 200  # bins that can be told apart


@dataclass(frozen=True, eq=False)
class BinnedCurve(Brief):
    """The binned calibration curve of one model.

    Attributes
    ----------
    name
        The model's name.
    prob_true, prob_pred
        The frequency of label 1 and the mean prediction in each bin that is not empty.
    count
        The rows of each.
    lower, upper
        The ends of the interval in each bin.
    bin_lower, bin_upper
        The edges of each bin.
    confidence_level
        That of each interval.
    scale
        "linear" or "logit": the axis it is drawn on.
    """

    name: str
    prob_true: Vector
    prob_pred: Vector
    count: Integers
    lower: Vector
    upper: Vector
    bin_lower: Vector
    bin_upper: Vector
    confidence_level: float
    scale: ScaleName = "linear"


class BinnedDisplay(PredictionDisplay[BinnedCurve]):
    """The classic reliability diagram: the frequency of label 1 in bins of the predictions.

    Bars go up to the frequency, a hatched gap from there to the mean prediction, and the number of
    rows stands above each; whiskers are intervals of the population's frequency, in each bin by
    itself. With several models there are points and whiskers only. Bins and numbers are those of
    :func:`caldist.clinical.calibration_curve`, which are scikit-learn's.

    The axes fit the predictions. Rare events want ``strategy="quantile"``, since nearly all rows
    are in the first one of bins of equal width, and ``scale="logit"``.

    What is seen depends on the bins: :class:`ReliabilityDisplay` needs none, and has a band that
    holds for the whole curve.

    **Cost.** O(n) and a sort.

    Parameters
    ----------
    models : list of BinnedCurve

    Examples
    --------
    >>> from caldist.plots import BinnedDisplay
    >>> display = BinnedDisplay.from_predictions([0, 1, 0, 1], [0.2, 0.3, 0.6, 0.8], n_bins=2)
    >>> display.models[0].prob_true, display.models[0].count
    (array([0.5, 0.5]), array([2, 2]))
    >>> import matplotlib.pyplot as plt; plt.close(display.figure_)
    """

    @classmethod
    @answering
    def from_predictions(
        cls,
        y_true: Labels,
        y_prob: Scores = None,
        *,
        n_bins: int = 10,
        strategy: Strategy = "uniform",
        sample_weight: ArrayLike | None = None,
        pos_label: object = None,
        clusters: ArrayLike | None = None,
        name: str | None = None,
        confidence_level: float = 0.95,
        scale: ScaleName = "linear",
        ax: Axes | None = None,
    ) -> Self:
        """Compute the bins of one or several models, and draw them.

        Parameters
        ----------
        y_true : array-like of 0 and 1, Joint, or dict from names to joints
            A joint stands for labels, predictions and weights at once.
        y_prob : array-like in [0, 1], or dict from names to such
            The predicted probability of label 1.
        n_bins : int
            How many bins, at most 200.
        strategy : "uniform" or "quantile"
            Bins of equal width, or between quantiles of the predictions.
        sample_weight : array-like, optional
        pos_label : optional
            The value of ``y_true`` that counts as label 1, where labels are not 0 and 1.
        clusters : array-like, optional
            The cluster of each row, for the intervals.
        name : str, optional
            The model's name in the figure.
        confidence_level : float
            That of each interval.
        scale : "linear" or "logit"
            The axis of predictions and frequencies.
        ax : matplotlib axes, optional
        """
        validate.check_choice("scale", scale, SCALES)
        n_bins = validate.check_count("n_bins", n_bins, maximum=_MOST)
        validate.check_choice("strategy", strategy, ("uniform", "quantile"))
        level = validate.check_fraction("confidence_level", confidence_level)
        found = cls._of(
            lambda key, rows: binned_curve(key, rows, n_bins, strategy, level, scale),
            y_true, y_prob, name,
            sample_weight=sample_weight, clusters=clusters, pos_label=pos_label,
        )  # fmt: skip
        return found.plot(ax=ax)

    @answering
    def plot(self, *, ax: Axes | None = None) -> Self:
        """Draw the bins.

        Parameters
        ----------
        ax : matplotlib axes, optional
        """
        ax, before, alone = self._begin(ax, 4.4, 4.6 + 0.17 * (len(self.models) - 1))
        if before == 0:
            axis = together([_seen(model) for model in self.models])
            axis.square(ax, "predicted probability", "frequency of label 1")
        axis = scale_on(ax, self.models[0].scale)
        others: dict[str, Any] = {}
        for at, model in enumerate(self.models, start=before):
            look = _style.model_style(at)
            if alone:
                others |= _bars(ax, model, look["color"], axis)
            ends = np.abs(np.stack((model.lower, model.upper)) - model.prob_true)
            whiskers = ax.errorbar(
                model.prob_pred, model.prob_true, yerr=ends, color=look["color"], linestyle="none",
                elinewidth=0.9, capsize=2, zorder=2,
            )  # fmt: skip
            whiskers.set_label("_whiskers")
            self.lines_ += ax.plot(
                model.prob_pred, model.prob_true, label=_style.mark(model.name), zorder=3,
                **(look | ({"linestyle": "none"} if alone else {})),
            )  # fmt: skip
        _style.legend(ax, others.values())
        return self

    def _columns(self, model: BinnedCurve) -> Columns:
        names = ("bin_lower", "bin_upper", "prob_pred", "prob_true", "count", "lower", "upper")
        return {name: getattr(model, name) for name in names}


def _bars(ax: Axes, model: BinnedCurve, colour: str, axis: Scale) -> dict[str, Any]:
    """Draw bars, gaps and the rows of each bin; return what the legend needs."""
    edges = axis.place(model.bin_lower), axis.place(model.bin_upper)
    middle = axis.prediction((edges[0] + edges[1]) / 2)  # as it is seen
    left, right = axis.prediction(edges[0]), axis.prediction(edges[1])
    width = right - left
    ax.bar(
        left, model.prob_true, width, align="edge", color=_style.tint(ax, colour, 0.22),
        edgecolor=_style.tint(ax, colour, 0.0), linewidth=0.6, zorder=0,
    )  # fmt: skip
    gap = ax.bar(
        left, model.prob_pred - model.prob_true, width, align="edge", bottom=model.prob_true,
        fill=False, edgecolor=_style.tint(ax, _style.RUST, 0.5), hatch="////", linewidth=0.0,
        zorder=1,
        label="gap to the mean prediction",
    )  # fmt: skip
    inside = axis.name == "logit" or axis.lower > 0  # where there is no room above
    if model.count.size <= 20 and not _style.is_narrow(ax):  # more would run into each other
        wide = edges[1] - edges[0] >= _LETTER
        for at, count in zip(middle[wide], model.count[wide], strict=True):
            ax.annotate(
                f"{count:,}", (at, axis.lower if inside else axis.upper), xytext=(0, 2),
                textcoords="offset points", ha="center", va="bottom", rotation=90,
                fontsize="x-small", color=_style.GREY, zorder=4,
            )  # fmt: skip
        if not inside:
            ax.set_ylim(0, 1.15 * axis.upper)  # room for them
    return {"gap": gap}


def _seen(model: BinnedCurve) -> Scale:
    """Return the axis that has room for the bins and the frequencies."""
    return scale_of(
        model.scale, model.prob_pred, model.count.astype(np.float64), [model.prob_true, model.upper]
    )


def binned_curve(
    name: str,
    rows: Rows,
    n_bins: int,
    strategy: Strategy,
    level: float,
    scale: ScaleName = "linear",
) -> BinnedCurve:
    """Return the bins of one model."""
    found = curve_of(rows, n_bins, strategy, level)
    return BinnedCurve(
        name, found.prob_true, found.prob_pred, found.count, found.lower, found.upper,
        found.bin_lower, found.bin_upper, level, scale,
    )  # fmt: skip
