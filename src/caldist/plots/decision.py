"""Decision curves: net benefit over the risk from which on one would act."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from caldist._util.brief import Brief
from caldist._util.types import Vector
from caldist.clinical.net_benefit import benefit_of, check_thresholds
from caldist.data import validate
from caldist.data.rows import Rows, models_of
from caldist.errors import answering
from caldist.plots import _style
from caldist.plots.display import Columns, Labels, PredictionDisplay, Scores
from caldist.plots.scale import SCALES, Scale, ScaleName, scale_of, together

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class DecisionCurve(Brief):
    """The decision curve of one model.

    Attributes
    ----------
    name
        The model's name.
    threshold
        The risks from which on one would act, increasing.
    treated
        The share of the rows at or above each, which are treated.
    model, treat_all
        The net benefit of treating these rows, and of treating all rows.
    lower, upper
        The ends of the interval at each threshold.
    confidence_level
        That of each interval.
    scale
        "linear" or "logit": the axis of thresholds.
    """

    name: str
    threshold: Vector
    treated: Vector
    model: Vector
    treat_all: Vector
    lower: Vector
    upper: Vector
    confidence_level: float
    scale: ScaleName = "linear"


class DecisionCurveDisplay(PredictionDisplay[DecisionCurve]):
    """Net benefit of models over thresholds, with those of treating all and none.

    A model is of use where its curve is above both. :func:`caldist.clinical.net_benefit` says what
    net benefit is, and how the band is made: it holds at each threshold by itself. The legend says
    from which threshold on a model treats nobody. Models on other
    rows than the first have a curve of treating all of their own, which is not drawn.

    **Cost.** That of :func:`caldist.clinical.net_benefit`.

    Parameters
    ----------
    models : list of DecisionCurve

    References
    ----------
    Vickers and Elkin, "Decision curve analysis", Medical Decision Making 2006.

    Examples
    --------
    >>> from caldist.plots import DecisionCurveDisplay
    >>> display = DecisionCurveDisplay.from_predictions(
    ...     [0, 1, 0, 1], [0.25, 0.5, 0.5, 0.75], thresholds=[0.25, 0.5]
    ... )
    >>> display.models[0].model.round(4), display.models[0].treat_all.round(4)
    (array([0.3333, 0.25  ]), array([0.3333, 0.    ]))
    >>> import matplotlib.pyplot as plt; plt.close(display.figure_)
    """

    @classmethod
    @answering
    def from_predictions(
        cls,
        y_true: Labels,
        y_prob: Scores = None,
        *,
        thresholds: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        pos_label: object = None,
        clusters: ArrayLike | None = None,
        name: str | None = None,
        confidence_level: float = 0.95,
        scale: ScaleName = "linear",
        ax: Axes | None = None,
    ) -> Self:
        """Compute the decision curves of one or several models, and draw them.

        Parameters
        ----------
        y_true : array-like of 0 and 1, Joint, or dict from names to joints
            A joint stands for labels, predictions and weights at once.
        y_prob : array-like in [0, 1], or dict from names to such
            The predicted probability of label 1.
        thresholds : array-like in [0, 1), optional
            By default 0.01, 0.02, …, 0.99 of an axis that fits the predictions, which is from 0 to
            1 unless all of them are small or large. Choose those at which somebody would act.
        sample_weight : array-like, optional
        pos_label : optional
            The value of ``y_true`` that counts as label 1, where labels are not 0 and 1.
        clusters : array-like, optional
            The cluster of each row, for the band.
        name : str, optional
            The model's name in the figure.
        confidence_level : float
            That of the band, at each threshold by itself.
        scale : "linear" or "logit"
            The axis of thresholds; "logit" for rare events.
        ax : matplotlib axes, optional
        """
        validate.check_choice("scale", scale, SCALES)
        level = validate.check_fraction("confidence_level", confidence_level)
        given = None if thresholds is None else np.unique(check_thresholds(thresholds))
        models = models_of(
            y_true, y_prob, name=name, default="predictions",
            sample_weight=sample_weight, clusters=clusters, pos_label=pos_label,
        )  # fmt: skip
        at = even_thresholds(models.values(), scale) if given is None else given
        curves = [decision_curve(key, rows, at, level, scale) for key, rows in models.items()]
        return cls(curves).plot(ax=ax)

    @answering
    def plot(self, *, ax: Axes | None = None) -> Self:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib axes, optional
        """
        ax, before, _ = self._begin(ax, 5.2, 3.8 + 0.17 * (len(self.models) - 1))
        first = self.models[0]
        others: dict[str, Any] = {}
        if before == 0:
            _style.plain_axes(ax)
            ax.set(xlabel="threshold: the risk from which on one would act", ylabel="net benefit")
            others["none"] = ax.axhline(
                0, color=_style.GREY, linewidth=0.9, zorder=1, label="treat none"
            )
            [others["all"]] = ax.plot(
                first.threshold, first.treat_all, color=_style.GREY, linewidth=0.9,
                linestyle=(0, (2, 1.5)), zorder=1, label="treat all",
            )  # fmt: skip
        for at, model in enumerate(self.models, start=before):
            look = _style.model_style(at)
            ax.fill_between(
                model.threshold, model.lower, model.upper, zorder=0, linewidth=0,
                color=_style.tint(ax, look["color"], 0.14),
            )  # fmt: skip
            for edge in (model.lower, model.upper):  # seen where bands of models overlap
                ax.plot(
                    model.threshold, edge, color=_style.tint(ax, look["color"], 0.5),
                    linestyle=look["linestyle"], linewidth=0.5, zorder=0.5,
                )  # fmt: skip
            every = max(1, model.threshold.size // 10)
            self.lines_ += ax.plot(
                model.threshold, model.model, label=_style.mark(_label(model)), zorder=3,
                markevery=every, **look,
            )  # fmt: skip
        if before == 0:
            top = max(float(np.maximum(model.upper, 0).max()) for model in self.models)
            top = max(top, float(first.treat_all.max()), 1e-6)
            # Treating all falls without end: what is far below doing nothing need not be seen.
            ax.set_ylim(-0.3 * top, 1.08 * top)
            if first.threshold.size > 1:
                ends = float(first.threshold[0]), float(first.threshold[-1])
                if first.scale == "logit":
                    Scale("logit", max(ends[0], 1e-9), ends[1]).along(ax)
                ax.set_xlim(*ends)
        _style.legend(ax, others.values())
        return self

    def _columns(self, model: DecisionCurve) -> Columns:
        return {
            "threshold": model.threshold,
            "treated": model.treated,
            "model_benefit": model.model,
            "treat_all": model.treat_all,
            "lower": model.lower,
            "upper": model.upper,
        }


def _label(model: DecisionCurve) -> str:
    """Return the name of a model, and from which threshold on it treats nobody."""
    nobody = model.threshold[model.treated == 0]
    return f"{model.name} (treats nobody from {nobody[0]:.3g} on)" if nobody.size else model.name


def even_thresholds(models: Iterable[Rows], scale: ScaleName) -> Vector:
    """Return 99 thresholds, evenly on an axis that fits the predictions of all models."""
    axes = [
        scale_of(scale, rows.joint.prediction, rows.joint.mass0 + rows.joint.mass1)
        for rows in models
    ]
    return together(axes).prediction(np.arange(1, 100) / 100)


def decision_curve(
    name: str, rows: Rows, threshold: Vector, level: float, scale: ScaleName = "linear"
) -> DecisionCurve:
    """Return the decision curve of one model."""
    found = benefit_of(rows, threshold, level)
    return DecisionCurve(
        name, found.threshold, found.treated, found.model, found.treat_all, found.lower,
        found.upper, level, scale,
    )  # fmt: skip
