"""A recalibration as a picture: the map, the rows, and the reliability before and after."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from caldist._util.brief import Brief
from caldist._util.numbers import least, most
from caldist._util.types import Vector
from caldist.data import validate
from caldist.data.joint import Joint
from caldist.data.rows import Rows, models_of
from caldist.data.validate import Rng
from caldist.errors import InvalidInput, InvalidType, answering
from caldist.plots import _histograms, _style, inputs
from caldist.plots.display import Columns, Labels, PredictionDisplay, Scores
from caldist.plots.inputs import Cells
from caldist.plots.reliability import smooth_curve
from caldist.plots.scale import SCALES, ScaleName, axis_of, scale_of, scale_on, together
from caldist.recalibration.calibration_map import CalibrationMap, mapped
from caldist.recalibration.recalibration import Family, Recalibration, recalibrate

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class MapCurve(Brief):
    """A map of one model's predictions.

    Attributes
    ----------
    name
        The model's name.
    x, y
        The table of the map.
    scale, smallest, largest
        The axis: "linear" or "logit", between two round numbers that have the predictions between
        them, before and after.
    mass_before, mass_after
        The share of the rows whose prediction is in each of some equal bins of the axis,
        as it is and mapped; None where no rows are known.
    deciles
        The places of markers: the deciles 5%, 15%, …, 95% of the predictions; None for no markers.
    before_prediction, before_frequency
        The smooth frequency of label 1 over the prediction; not a number where it is interrupted.
    after_prediction, after_frequency
        The same over the mapped prediction.
    lower_before, upper_after
        With the confidence level, the smooth calibration error was at least and is at most this;
        None where nothing is stated.
    confidence_level
        That of the statement, or None.
    """

    name: str
    x: Vector
    y: Vector
    smallest: float = 0.0
    largest: float = 1.0
    mass_before: Vector | None = None
    mass_after: Vector | None = None
    deciles: Vector | None = None
    before_prediction: Vector | None = None
    before_frequency: Vector | None = None
    after_prediction: Vector | None = None
    after_frequency: Vector | None = None
    lower_before: float | None = None
    upper_after: float | None = None
    confidence_level: float | None = None
    scale: ScaleName = "linear"


class MapDisplay(PredictionDisplay[MapCurve]):
    r"""A monotone map that recalibrates predictions, and what it does to the rows.

    Across, the prediction; upwards, where the map takes it. On the diagonal nothing changes.
    Markers are at the deciles 5%, 15%, …, 95% of the predictions.

    **Reliability.** With one model on the axes, and its rows known, two curves show the smooth
    frequency of label 1, as in :class:`ReliabilityDisplay`: over the prediction (before) and over
    the mapped prediction (after). Before, the map should follow the curve; after, the diagonal
    should. Part of the distance that is left afterwards is chance, and rows that
    fitted the map flatter it: the limits for the population stand in the legend.

    **Beneath**, histograms of the predictions before (upwards) and after (downwards), in 40 bins.
    Where all predictions are small, as those of rare events are, the axes end where they do; with
    ``scale="logit"`` they are of log odds, as in :class:`ReliabilityDisplay`.

    **Cost.** That of :func:`caldist.recalibrate`, where a map has to be found, and a pass over the
    rows.

    Parameters
    ----------
    models : list of MapCurve

    Examples
    --------
    >>> import caldist
    >>> from caldist.plots import MapDisplay
    >>> demo = caldist.datasets.load_demo()
    >>> y_true, y_prob = demo.y_true, demo.y_prob["random_forest"]
    >>> found = caldist.recalibrate(y_true, y_prob, n_resamples=99)
    >>> display = MapDisplay.from_recalibration(found, y_true, y_prob)
    >>> display.ax_.get_ylabel()
    'mapped prediction, frequency of label 1'
    >>> import matplotlib.pyplot as plt; plt.close(display.figure_)
    """

    @classmethod
    @answering
    def from_predictions(
        cls,
        y_true: Labels,
        y_prob: Scores = None,
        *,
        family: Family = "auto",
        sample_weight: ArrayLike | None = None,
        pos_label: object = None,
        clusters: ArrayLike | None = None,
        name: str | None = None,
        confidence_level: float | None = None,
        n_resamples: int = 999,
        rng: Rng = 0,
        scale: ScaleName = "linear",
        ax: Axes | None = None,
    ) -> Self:
        """Find the map of one or several models, and draw it.

        Parameters
        ----------
        y_true : array-like of 0 and 1, Joint, or dict from names to joints
            A joint stands for labels, predictions and weights at once.
        y_prob : array-like in [0, 1], or dict from names to such
            The predicted probability of label 1.
        family
            As for :func:`caldist.recalibrate`.
        sample_weight : array-like, optional
        pos_label : optional
            The value of ``y_true`` that counts as label 1, where labels are not 0 and 1.
        clusters : array-like, optional
            The cluster of each row.
        name : str, optional
            The model's name in the figure.
        confidence_level : float, optional
            That of a statement in the legend; none is made by default.
        n_resamples : int
            The number of replicates of a statement.
        rng : int, Generator or None
            For folds and replicates. The same rows give the same answer; None draws a fresh seed.
        scale : "linear" or "logit"
            The axis of predictions before and after; "logit" for rare events.
        ax : matplotlib axes, optional
        """
        validate.check_choice("scale", scale, SCALES)

        def shown(key: str, rows: Rows) -> MapCurve:
            with warnings.catch_warnings():
                # That a map is constant can be seen.
                warnings.filterwarnings("ignore", "the map is constant|all rows have label")
                found = recalibrate(
                    rows,  # type: ignore[arg-type]  # checked and sorted already
                    family=family,
                    confidence_level=confidence_level,
                    n_resamples=n_resamples,
                    rng=rng,
                )
            return recalibration_curve(key, found, rows, scale)

        options = {
            "sample_weight": sample_weight,
            "clusters": clusters,
            "pos_label": pos_label,
        }
        return cls._of(shown, y_true, y_prob, name, **options).plot(ax=ax)

    @classmethod
    @answering
    def from_recalibration(
        cls,
        found: Recalibration,
        y_true: ArrayLike | Joint | None = None,
        y_prob: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        pos_label: object = None,
        name: str | None = None,
        scale: ScaleName = "linear",
        ax: Axes | None = None,
    ) -> Self:
        """Draw the map of a recalibration, with the limits stated for it.

        Parameters
        ----------
        found : Recalibration
            What :func:`caldist.recalibrate` or :func:`caldist.recalibration.evaluate_map` returned.
        y_true : array-like of 0 and 1, or Joint, optional
            The rows, for histograms and reliability; without them the map alone is drawn.
        y_prob : array-like in [0, 1], optional
        sample_weight : array-like, optional
        pos_label : optional
            The value of ``y_true`` that counts as label 1, where labels are not 0 and 1.
        name : str, optional
            The model's name in the figure.
        scale : "linear" or "logit"
            The axis of predictions before and after; only with rows.
        ax : matplotlib axes, optional
        """
        validate.check_choice("scale", scale, SCALES)
        if not isinstance(found, Recalibration):
            reason = f"is of type {type(found).__name__}, but it must be a Recalibration"
            raise InvalidType(argument="found", reason=reason)
        key, rows = _one(y_true, y_prob, sample_weight, pos_label, name)
        return cls([recalibration_curve(key, found, rows, scale)]).plot(ax=ax)

    @classmethod
    @answering
    def from_map(
        cls,
        table: CalibrationMap,
        y_true: ArrayLike | Joint | None = None,
        y_prob: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        pos_label: object = None,
        name: str | None = None,
        scale: ScaleName = "linear",
        ax: Axes | None = None,
    ) -> Self:
        """Draw a map.

        Parameters
        ----------
        table : CalibrationMap
        y_true, y_prob, sample_weight, pos_label, name, scale, ax
            As for :meth:`from_recalibration`.
        """
        validate.check_choice("scale", scale, SCALES)
        if not isinstance(table, CalibrationMap):
            reason = f"is of type {type(table).__name__}, but it must be a CalibrationMap"
            raise InvalidType(argument="table", reason=reason)
        key, rows = _one(y_true, y_prob, sample_weight, pos_label, name)
        return cls([map_curve(key, table, rows, scale)]).plot(ax=ax)

    @answering
    def plot(self, *, ax: Axes | None = None) -> Self:
        """Draw the map.

        Parameters
        ----------
        ax : matplotlib axes, optional
        """
        ax, before, alone = self._begin(ax, 4.6, _histograms.figure_height(len(self.models)))
        known = alone and self.models[0].before_prediction is not None
        if before == 0:
            up = "mapped prediction, frequency of label 1" if known else "mapped prediction"
            together([axis_of(model) for model in self.models]).square(ax, "prediction", up)
        axis = scale_on(ax, self.models[0].scale)
        others: dict[str, Any] = {}
        for at, model in enumerate(self.models, start=before):
            if known:
                others = _draw_reliability(ax, model)
            even = axis.prediction(np.linspace(0, 1, 2 if axis.name == "linear" else 65))
            x = np.unique(np.concatenate((model.x, even, *_given(model.deciles))))
            x = x[(x >= axis.lower) & (x <= axis.upper)]
            y = np.interp(x, model.x, model.y)
            marked = [] if model.deciles is None else np.searchsorted(x, model.deciles).tolist()
            self.lines_ += ax.plot(
                x, y, label=_style.mark(model.name) + _stated(model), markevery=marked,
                clip_on=not axis.is_whole, zorder=3, **_style.model_style(at),
            )  # fmt: skip
            if model.mass_before is not None and model.mass_after is not None:
                masses = model.mass_before, model.mass_after
                sides = ("before", "after")
                _histograms.draw(ax, at, *masses, sides, bins=axis_of(model), axis=axis)
        _style.legend(ax, others.values())
        return self

    def _columns(self, model: MapCurve) -> Columns:
        curves: dict[str, tuple[Vector | None, Vector | None]] = {
            "map": (model.x, model.y),
            "before": (model.before_prediction, model.before_frequency),
            "after": (model.after_prediction, model.after_frequency),
        }
        known = {key: (x, y) for key, (x, y) in curves.items() if x is not None and y is not None}
        return {
            "curve": np.repeat(list(known), [x.size for x, _ in known.values()]),
            "prediction": np.concatenate([x for x, _ in known.values()]),
            "value": np.concatenate([y for _, y in known.values()]),
        }


def _given(values: Vector | None) -> tuple[Vector, ...]:
    return () if values is None else (values,)


def _one(
    y_true: Any,
    y_prob: Any,
    sample_weight: ArrayLike | None,
    pos_label: object,
    name: str | None,
) -> tuple[str, Rows | None]:
    """Return the name and the rows of one model, where there are any."""
    if y_true is not None:
        found = models_of(
            y_true,
            y_prob,
            sample_weight=sample_weight,
            pos_label=pos_label,
            name=name,
            default="map",
        )
        if len(found) > 1:
            reason = f"has rows of {len(found)} models, but a map is of one"
            argument = "y_prob" if isinstance(y_prob, Mapping) else "y_true"
            raise InvalidInput(argument=argument, reason=reason)
        return next(iter(found.items()))
    given = {"y_prob": y_prob, "sample_weight": sample_weight, "pos_label": pos_label}
    for argument, value in given.items():
        if value is not None:
            remedy = "Pass both, or none."
            raise InvalidInput(argument=argument, reason="was given without y_true", remedy=remedy)
    if name is not None and not isinstance(name, str):
        raise InvalidType(argument="name", value=name, reason="it must be a string")
    return "map" if name is None else name, None


def _stated(model: MapCurve) -> str:
    if model.lower_before is None or model.upper_after is None:
        return ""
    return f": smCE ≥ {least(model.lower_before, 2)}, then ≤ {most(model.upper_after, 2)}"


def _draw_reliability(ax: Axes, model: MapCurve) -> dict[str, Any]:
    """Draw the reliability of one model; return what the legend says of it."""
    looks = (
        ("before", model.before_prediction, model.before_frequency, _style.RUST, (0, (4, 1.4))),
        ("after", model.after_prediction, model.after_frequency, "#3f93c8", (0, (1.2, 1.2))),
    )
    others = {}
    for when, x, y, colour, dash in looks:
        if x is not None and y is not None:
            (others[when],) = ax.plot(
                x, y, color=colour, linestyle=dash, linewidth=1.4, zorder=2,
                label=f"frequency of label 1 {when}",
            )  # fmt: skip
    return others


def map_curve(
    name: str, table: CalibrationMap, rows: Rows | None, scale: ScaleName = "linear"
) -> MapCurve:
    """Return a map, with what it does to rows."""
    if rows is None:
        return MapCurve(name, table.x, table.y)
    v, (mass0, mass1) = rows.joint.prediction, rows.joint.normalized()
    mass, value = mass0 + mass1, mapped(table, v)
    axis = scale_of(scale, v, mass, [value])
    before = smooth_curve(v, mass0, mass1, Cells.of(rows, scale=axis).chance_width(), axis)
    width = Cells.of(rows, value, axis).chance_width()
    after = smooth_curve(value, mass0, mass1, width, axis)
    return MapCurve(
        name,
        table.x,
        table.y,
        smallest=axis.lower,
        largest=axis.upper,
        mass_before=_histograms.histogram(axis.place(v), mass),
        mass_after=_histograms.histogram(axis.place(value), mass),
        deciles=v[inputs.quantile_places(mass)],
        before_prediction=before[0],
        before_frequency=before[1],
        after_prediction=after[0],
        after_frequency=after[1],
        scale=scale,
    )


def recalibration_curve(
    name: str, found: Recalibration, rows: Rows | None, scale: ScaleName = "linear"
) -> MapCurve:
    """Return the map of a recalibration, with the limits stated for it."""
    if found.map is None:
        raise InvalidInput(argument="found", reason=f"has no map: {found.reason.rstrip('.')}")
    curve = map_curve(name, found.map, rows, scale)
    if not found.after:
        return curve
    return replace(
        curve,
        lower_before=found.before["smooth_ce"].lower,
        upper_after=found.after["smooth_ce"].upper,
        confidence_level=found.confidence_level,
    )
