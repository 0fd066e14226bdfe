"""The reliability diagram: smooth and isotonic curves with a band, and the predictions beneath."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from caldist._util.brief import Brief
from caldist._util.types import Vector
from caldist.clinical.rates import rates_of
from caldist.data import validate
from caldist.data.rows import Rows
from caldist.data.validate import Rng
from caldist.errors import InvalidInput, answering
from caldist.inference.null_distribution import drawing_error
from caldist.measures import reflected_gaussian
from caldist.measures.corp import isotonic_fit
from caldist.plots import _histograms, _style, inputs
from caldist.plots.display import Columns, Display, Labels, PredictionDisplay, Scores
from caldist.plots.inputs import GRID, NEGLIGIBLE, Cells
from caldist.plots.scale import (
    SCALES,
    Scale,
    ScaleName,
    axis_of,
    scale_on,
    seen,
    together,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Curve = Literal["smooth", "isotonic", "both"]

_NEAR = 4.0  # widths from a prediction up to which the smooth curve is drawn
_ROUNDING = 1e-9
_RESAMPLES, _MOST_RESAMPLES = 2000, 20_000


@dataclass(frozen=True, eq=False)
class ReliabilityCurve(Brief):
    """The reliability of one model.

    Attributes
    ----------
    name
        The model's name.
    prediction, frequency
        The smooth curve; not a number where it is interrupted.
    mass0, mass1
        The share of the rows that have label 0 and label 1 and a prediction in each of some bins
        that are equal on the axis from ``smallest`` to ``largest``.
    deciles
        The places of markers: the deciles 5%, 15%, …, 95% of the predictions. None for no markers.
    band_lower, band_upper
        The band that belongs to each point of the smooth curve; None where there is none.
    isotonic_prediction, isotonic_frequency
        The distinct predictions and their values under isotonic regression; None where not
        computed.
    width
        The standard deviation σ of the smoothing kernel, as a share of that axis.
    confidence_level
        That of the band, or None.
    scale, smallest, largest
        The axis that the curve was made for: "linear" or "logit", between two round numbers
        beyond which there is at most 0.1% of the predictions.
    rates
        The mean prediction, the frequency of label 1 and the factor between them, in two lines of
        words; empty where they are not known.
    """

    name: str
    prediction: Vector
    frequency: Vector
    mass0: Vector
    mass1: Vector
    deciles: Vector | None = None
    band_lower: Vector | None = None
    band_upper: Vector | None = None
    isotonic_prediction: Vector | None = None
    isotonic_frequency: Vector | None = None
    width: float = 0.0
    confidence_level: float | None = None
    scale: ScaleName = "linear"
    smallest: float = 0.0
    largest: float = 1.0
    rates: str = ""


class ReliabilityDrawing(Display[ReliabilityCurve]):
    """How curves of reliability are drawn, whatever their labels stand for."""

    _axes: ClassVar[tuple[str, str]] = ("prediction", "frequency of label 1")
    _sides: ClassVar[tuple[str, str]] = ("y = 1", "y = 0")

    @answering
    def plot(
        self, *, ax: Axes | None = None, curve: Curve | None = None, density: bool = True
    ) -> Self:
        """Draw the diagram; on axes that have one already, beside it.

        Parameters
        ----------
        ax : matplotlib axes, optional
        curve : "smooth", "isotonic" or "both", optional
            Which curves. By default both for one model, and for several the smooth ones.
        density : bool
            Whether to draw the predictions beneath.
        """
        if curve is not None:
            validate.check_choice("curve", curve, ("smooth", "isotonic", "both"))
        density = validate.check_flag("density", density)
        ax, before, alone = self._begin(ax, 4.6, _histograms.figure_height(len(self.models)))
        if curve is None:
            curve = "both" if alone else "smooth"
        if before == 0:
            together([_seen(model) for model in self.models]).square(ax, *self._axes)
        axis = scale_on(ax, self.models[0].scale)
        others: dict[str, Any] = {}
        for at, model in enumerate(self.models, start=before):
            others |= self._draw(ax, at, model, curve, axis, alone=alone)
            if density:
                _histograms.draw(
                    ax, at, model.mass1, model.mass0, self._sides, bins=axis_of(model), axis=axis
                )  # fmt: skip
        _style.legend(ax, others.values())
        return self

    def _draw(
        self, ax: Axes, at: int, model: ReliabilityCurve, curve: Curve, axis: Scale, *, alone: bool
    ) -> dict[str, Any]:
        """Draw one model; return what the legend says beside its name."""
        look = _style.model_style(at)
        others: dict[str, Any] = {}
        if curve != "isotonic" and model.band_lower is not None and model.band_upper is not None:
            if alone:
                others["band"] = ax.fill_between(
                    model.prediction, model.band_lower, model.band_upper, linewidth=0, zorder=1,
                    color=_style.tint(ax, look["color"], 0.16),
                    label=f"{_percent(model)} band if calibrated",
                )  # fmt: skip
            else:
                y = model.frequency
                outside = (y < model.band_lower - _ROUNDING) | (y > model.band_upper + _ROUNDING)
                _style.halo(ax, model.prediction, y, outside, at)
                others["outside"] = _style.halo_sample(ax, f"outside its {_percent(model)} band")
        x, y = model.prediction, model.frequency
        fit = (model.isotonic_prediction, model.isotonic_frequency)
        if curve != "smooth" and fit[0] is not None and fit[1] is not None:
            corners = _corners(fit[0], fit[1])
            if curve == "isotonic":
                x, y = corners
            else:
                (others["isotonic"],) = ax.plot(
                    *corners, color=_style.RUST if at % 2 == 0 else _style.DARK, linewidth=0.9,
                    linestyle=(0, (4, 1.4)), label="isotonic (CORP)", zorder=2,
                )  # fmt: skip
        self.lines_ += ax.plot(
            x, y, label=_style.mark(model.name), markevery=_nearest(x, model.deciles),
            clip_on=not axis.is_whole, zorder=3, **look,
        )  # fmt: skip
        if alone and model.rates and not axis.is_whole:
            (others["rates"],) = ax.plot([], [], linestyle="none", label=model.rates)
        return others

    def _columns(self, model: ReliabilityCurve) -> Columns:
        size, none = model.prediction.size, np.empty(0)
        x = none if model.isotonic_prediction is None else model.isotonic_prediction
        y = none if model.isotonic_frequency is None else model.isotonic_frequency
        band = np.full((2, size + x.size), np.nan)
        if model.band_lower is not None and model.band_upper is not None:
            band[:, :size] = model.band_lower, model.band_upper
        return {
            "curve": np.repeat(["smooth", "isotonic"], (size, x.size)),
            "prediction": np.concatenate((model.prediction, x)),
            "frequency": np.concatenate((model.frequency, y)),
            "band_lower": band[0],
            "band_upper": band[1],
        }


class ReliabilityDisplay(ReliabilityDrawing, PredictionDisplay[ReliabilityCurve]):
    r"""The frequency of label 1 over the prediction.

    **The smooth curve.** With weights :math:`K_\sigma(v, t)` of the reflected Gaussian about t, as
    in :func:`caldist.measures.kernel_smoothed_ece`, it goes through the points

    .. math:: \left( \frac{E[v K_\sigma(v, t)]}{E[K_\sigma(v, t)]},\;
                     \frac{E[y K_\sigma(v, t)]}{E[K_\sigma(v, t)]} \right), \qquad 0 \le t \le 1:

    mean prediction and mean label in a moving window. As with bins, smoothing moves calibrated
    predictions along the diagonal and not away from it; the distance from the diagonal, averaged
    over t with the smoothed density of the predictions, is the smECE at width σ. The width, at
    least 0.01 of the axis, is the average standard deviation of the curve if the predictions are
    calibrated: it is smoothed across by as much as chance moves it up and down. Nothing has to be
    chosen, and the labels have no part in it. The smECE as the width, as in the diagrams of Błasiok
    and Nakkiran, follows the labels, and then the band below would not hold its level. The curve
    is interrupted where no prediction is within 4σ. Markers are at the deciles 5%, 15%, …, 95% of
    the predictions.

    **The axis** fits the predictions: it goes from 0 to 1, or from 0 to a round number that at most
    0.1% of them exceed, or from one to 1. Those count at its ends, where the kernel is reflected.
    With ``scale="logit"`` places on it are log odds, in which rare events are told apart: windows
    and bins are even there. Where the axis is not from 0 to 1 the legend of one model has the mean
    prediction, the frequency of label 1 and the factor between them.

    **The isotonic curve** is the increasing function of the predictions that fits the labels best
    (:func:`caldist.measures.corp`), joined by lines.

    **The band** shows what calibrated predictions would do: if they were calibrated, the whole
    smooth curve would stay in it with probability ``confidence_level``. It is simultaneous, not
    pointwise, and a curve that leaves it anywhere rejects calibration at that level. The
    predictions are kept and labels y* ~ Bernoulli(v) drawn 2,000 times, or more where a high level
    needs it, with predictions moved by less than 1/1000. The band is the k-th lowest and highest of
    these curves at each point, with the largest k that holds a further such curve at the level. So
    it is right for few rows, ties, and predictions near 0 and 1, up to the error of the draws.
    Weights are taken as fixed weights of independent rows, not as repetitions. With ``clusters``
    one random number decides the labels of a whole cluster, so that they depend on each other as
    much as calibrated labels can; the curves stay as they are. The band is for the smooth curve,
    not the isotonic one, and is no confidence band about the curve. With several models on the
    axes the bands are not drawn; pieces of a curve outside of its band have a broad shade instead.

    **Beneath**, histograms of the predictions with label 1 (upwards) and with label 0 (downwards),
    in 40 bins, on one scale for each model.

    **From rounded predictions**, in the cells of a joint, windows, steps and bins are of whole
    cells, each in the place of its mean. Mean prediction and mean label of a cell are exact, so the
    curve is one of the rows. What drawing labels from the means may miss is added to the level of
    the band; where cells are too wide for any, it is left out.

    **Cost.** A sort, isotonic regression, and draws in at most 1,000 cells whatever n is; with
    ``clusters`` the draws go over all rows.

    Curves of more than 1,000 points are thinned to what can be seen; ``to_frame`` has all of them.

    Parameters
    ----------
    models : list of ReliabilityCurve

    References
    ----------
    Błasiok and Nakkiran, "Smooth ECE: Principled Reliability Diagrams via Kernel Smoothing", 2023.
    Dimitriadis, Gneiting and Jordan, "Stable reliability diagrams for probabilistic classifiers",
    2021. Bröcker and Smith, "Increasing the reliability of reliability diagrams", 2007 (consistency
    bands). Myllymäki, Mrkvička, Grabarnik, Seijo and Hahn, "Global envelope tests for spatial
    processes", 2017.

    Examples
    --------
    >>> from caldist.plots import ReliabilityDisplay
    >>> display = ReliabilityDisplay.from_predictions([0, 1, 0, 1], [0.25, 0.5, 0.5, 0.75])
    >>> display.ax_.get_xlabel()
    'prediction'
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
        confidence_level: float | None = 0.95,
        rng: Rng = 0,
        scale: ScaleName = "linear",
        ax: Axes | None = None,
        curve: Curve | None = None,
        density: bool = True,
    ) -> Self:
        """Compute the curves of one or several models, and draw them.

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
            The cluster of each row, for the band.
        name : str, optional
            The model's name in the figure.
        confidence_level : float or None
            That of the band; None for no band.
        rng : int, Generator or None
            For the band. The same rows give the same answer; None draws a fresh seed.
        scale : "linear" or "logit"
            The axis of predictions and frequencies; "logit" for rare events.
        ax, curve, density
            As for :meth:`plot`.
        """
        validate.check_choice("scale", scale, SCALES)
        if confidence_level is not None:
            confidence_level = validate.check_fraction("confidence_level", confidence_level)
        generator = validate.generator(rng)
        found = cls._of(
            lambda key, rows: reliability_curve(key, rows, confidence_level, generator, scale),
            y_true, y_prob, name,
            sample_weight=sample_weight, clusters=clusters, pos_label=pos_label,
        )  # fmt: skip
        return found.plot(ax=ax, curve=curve, density=density)


def _corners(x: Vector, y: Vector) -> tuple[Vector, Vector]:
    """Return the ends of the level stretches of an increasing function, thinned."""
    ends = (np.diff(y, prepend=-1) != 0) | (np.diff(y, append=2) != 0)
    x, y = x[ends], y[ends]
    keep = inputs.thin(x, y)
    return x[keep], y[keep]


def _percent(model: ReliabilityCurve) -> str:
    return f"{100 * (model.confidence_level or 0):.4g}%"


def _nearest(x: Vector, places: Vector | None) -> list[int]:
    """Return which points of a curve are nearest to some places."""
    if places is None:
        return []
    known = np.flatnonzero(~np.isnan(x))
    nearest = np.abs(x[known] - places[:, None]).argmin(axis=1)
    return sorted({int(at) for at in known[nearest]})


def _seen(model: ReliabilityCurve) -> Scale:
    """Return the axis that has room for the curve too, as far as it does not go far beyond."""
    return seen(model.scale, model.smallest, model.largest, [model.frequency])


def reliability_curve(
    name: str,
    rows: Rows,
    confidence_level: float | None,
    rng: np.random.Generator,
    scale: ScaleName = "linear",
) -> ReliabilityCurve:
    """Return the reliability of one model."""
    given, (rows, axis) = rows, inputs.on_axis(rows, scale)
    joint = rows.joint
    v, (mass0, mass1) = joint.prediction, joint.normalized()
    cells = Cells.of(rows, scale=axis)
    width = cells.chance_width()
    prediction, frequency = smooth_curve(v, mass0, mass1, width, axis)
    near = ~np.isnan(prediction)
    lower = upper = band = None
    if confidence_level is not None:
        missed = drawing_error(joint) if given.is_summary else 0.0
        band = _band(cells, width, GRID[near], confidence_level + missed, rng)
        if band is None and missed == 0:
            reason = "that is too close to 1 for a band from draws"
            raise InvalidInput(argument="confidence_level", value=confidence_level, reason=reason)
    if band is not None:
        lower, upper = np.full((2, GRID.size), np.nan)
        # Relative to the mean prediction of the rows, not of the cells.
        lower[near], upper[near] = np.clip(prediction[near] + band, 0, 1)
    return ReliabilityCurve(
        name=name,
        prediction=prediction,
        frequency=frequency,
        mass0=_histograms.histogram(axis.place(v), mass0),
        mass1=_histograms.histogram(axis.place(v), mass1),
        deciles=v[inputs.quantile_places(mass0 + mass1)],
        band_lower=lower,
        band_upper=upper,
        isotonic_prediction=v,
        isotonic_frequency=isotonic_fit(mass0, mass1),
        width=width,
        confidence_level=None if band is None else confidence_level,
        scale=scale,
        smallest=axis.lower,
        largest=axis.upper,
        rates="\n".join(rates_of(rows, confidence_level or 0.95).lines),
    )


def smooth_curve(
    v: Vector, mass0: Vector, mass1: Vector, width: float, scale: Scale
) -> tuple[Vector, Vector]:
    """Return mean prediction and frequency of label 1 in a moving window over the grid.

    ``v`` does not decrease. Not a number where no prediction is near.
    """
    place = scale.place(v)
    density, ones, first = (
        reflected_gaussian.density(place, mass, width, GRID)
        for mass in (mass0 + mass1, mass1, (mass0 + mass1) * v)
    )
    after = np.searchsorted(place, GRID)
    gap = np.minimum(
        np.abs(GRID - place[after.clip(max=v.size - 1)]),
        np.abs(GRID - place[(after - 1).clip(min=0)]),
    )
    near = (gap <= _NEAR * width) & (density > NEGLIGIBLE)
    density[~near] = np.nan
    return np.clip(first / density, 0, 1), np.clip(ones / density, 0, 1)


def _band(
    cells: Cells, width: float, at: Vector, level: float, rng: np.random.Generator
) -> Vector | None:
    """Return how far below and above the diagonal curves of calibrated predictions stay.

    A further curve is below the k-th lowest of B where it is among the k + 1 lowest of all B + 1.
    So the share of the B curves between their (k + 1)-th ones is what the band of the k-th holds.
    None where the level is too close to 1, or beyond, for as many draws as are made.
    """
    weight = reflected_gaussian.Kernel(cells.at, at, width)(width)
    weight /= cells.mass @ weight
    drawn = np.empty((0, at.size))

    def holds(k: int) -> bool:
        inside = (drawn >= ordered[k]) & (drawn <= ordered[-1 - k])
        return bool(np.mean(inside.all(axis=1)) >= level)

    while level < 1 and drawn.shape[0] < _MOST_RESAMPLES:
        more = cells.calibrated_residuals(_RESAMPLES, rng) @ weight
        drawn = np.concatenate((drawn, more))
        ordered = np.sort(drawn, axis=0)
        if holds(1):
            break
    else:
        return None
    low, high = 1, drawn.shape[0] // 2
    while high - low > 1:
        k = (low + high) // 2
        low, high = (k, high) if holds(k) else (low, k)
    return ordered[[low - 1, -low]]
